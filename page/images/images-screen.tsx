import type { ImageSummary } from '@gantry/client/images.ts';
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';

import { call, isReadOnly } from '../api/request.ts';
import { hrefOf } from '../app/route.ts';
import { useLoad } from '../parts/load.ts';
import { useStore } from '../parts/store.ts';
import { ageText, countText, shortId, sizeText } from '../parts/texts.ts';
import { BuildDrop } from './build-drop.tsx';
import { namesOf } from './names.ts';
import { PruneButton } from './prune.tsx';
import { PullForm } from './pull-form.tsx';

/** All images with their sizes. */
export function ImagesScreen(): JSX.Element {
  const [search, setSearch] = useState('');
  const readOnly = useStore(isReadOnly);
  const { value: images, problem } = useLoad(
    async () => await call<ImageSummary[]>('GET', '/images/json', { query: { 'shared-size': true } }),
    'images',
    (type, _id, action) => type === 'image' || (type === 'container' && (action === 'create' || action === 'destroy')),
  );
  const shown = (images ?? []).filter((one) => namesOf(one).join(' ').toLowerCase().includes(search.toLowerCase()));
  return (
    <section class="screen">
      <div class="bar">
        <h1>Images</h1>
        <span class="soft">{images === undefined ? '' : countText(images.length, 'image')}</span>
        <input
          type="search"
          placeholder="Search  /"
          aria-label="Search images"
          value={search}
          onInput={(event) => setSearch(event.currentTarget.value)}
        />
        {!readOnly && (
          <>
            <PullForm />
            <PruneButton />
          </>
        )}
      </div>
      {!readOnly && <BuildDrop />}
      {problem !== undefined && <p class="banner">{problem}</p>}
      <div class="scroller">
        <table class="rows">
          <thead>
            <tr>
              <th>Name</th>
              <th class="middle">Id</th>
              <th class="number">Size</th>
              <th class="number middle">Shared</th>
              <th class="number middle">Containers</th>
              <th class="number">Age</th>
            </tr>
          </thead>
          <tbody>
            {shown
              .toSorted((one, other) => other.Size - one.Size)
              .map((image) => (
                <tr key={image.Id}>
                  <td class="name">
                    <a class="row-link" href={hrefOf('images', image.Id)}>
                      <bdi>{namesOf(image).join(', ')}</bdi>
                    </a>
                  </td>
                  <td class="middle">
                    <code>{shortId(image.Id)}</code>
                  </td>
                  <td class="number">{sizeText(image.Size)}</td>
                  <td class="number middle">{image.SharedSize < 0 ? '' : sizeText(image.SharedSize)}</td>
                  <td class="number middle">{image.Containers < 0 ? '' : image.Containers}</td>
                  <td class="number">{ageText(image.Created * 1000)}</td>
                </tr>
              ))}
          </tbody>
        </table>
        {images !== undefined && shown.length === 0 && <p class="empty">No images.</p>}
      </div>
    </section>
  );
}
