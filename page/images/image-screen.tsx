import type { Summary } from '@gantry/client/containers.ts';
import type { HistoryStep } from '@gantry/client/images.ts';
import type { ImageInspect } from '@gantry/engine/images/schema.ts';
import type { JSX } from 'preact';

import { call, filters, isReadOnly } from '../api/request.ts';
import { go, hrefOf } from '../app/route.ts';
import { nameOf } from '../containers/names.ts';
import { confirm } from '../parts/confirm.tsx';
import { Facts } from '../parts/facts.tsx';
import { List } from '../parts/list.tsx';
import { useLoad } from '../parts/load.ts';
import { attempt, notify } from '../parts/notices.tsx';
import { useStore } from '../parts/store.ts';
import { shortId, sizeText, timeText } from '../parts/texts.ts';
import { namesOf } from './names.ts';
import { PushForm } from './push-form.tsx';
import { TagForm } from './tag-form.tsx';

type Loaded = Readonly<{ image: ImageInspect; steps: readonly HistoryStep[]; users: readonly Summary[] }>;

/** One image: its tags, the steps that made its layers, the containers that use it. */
export function ImageScreen({ id }: { id: string }): JSX.Element {
  const readOnly = useStore(isReadOnly);
  const { value, problem } = useLoad(
    async () => await loadImage(id),
    id,
    (type) => type === 'image' || type === 'container',
  );
  if (value === undefined) return <p class="empty">{problem ?? 'Loading…'}</p>;
  const { image, steps, users } = value;
  return (
    <section class="screen">
      <div class="bar">
        <h1 class="title">
          <a href={hrefOf('images')} aria-label="All images">
            ‹
          </a>{' '}
          <bdi>{namesOf(image)[0]}</bdi>
        </h1>
        {!readOnly && (
          <div class="actions">
            <TagForm id={image.Id} />
            <PushForm tags={image.RepoTags} />
            <button type="button" class="danger" onClick={() => void attempt(async () => await removeImage(image))}>
              Remove
            </button>
          </div>
        )}
      </div>
      <div class="scroller padded">
        <Facts
          facts={[
            ['Id', image.Id],
            ['Tags', image.RepoTags.join(', ')],
            ['Digests', image.RepoDigests.join(', ')],
            ['Size', sizeText(image.Size)],
            ['For', `${image.Os}/${image.Architecture}`],
            ['Created', timeText(image.Created)],
          ]}
        />
        <h2>Used by</h2>
        <List
          head={['Container', 'State']}
          rows={users.map((one) => [<a href={hrefOf('containers', one.Id)}>{nameOf(one)}</a>, one.Status])}
          none="No container"
        />
        <h2>Steps</h2>
        <List
          head={['Step', 'Size']}
          rows={steps.map(({ CreatedBy, Comment, Size }) => [
            <code>{CreatedBy === '' ? Comment : CreatedBy}</code>,
            Size === 0 ? '' : sizeText(Size),
          ])}
          none="Unknown"
        />
      </div>
    </section>
  );
}

async function loadImage(id: string): Promise<Loaded> {
  const path = `/images/${encodeURIComponent(id)}`;
  const [image, steps, users] = await Promise.all([
    call<ImageInspect>('GET', `${path}/json`),
    call<HistoryStep[]>('GET', `${path}/history`),
    call<Summary[]>('GET', '/containers/json', { query: { all: true, ...filters({ ancestor: [id] }) } }),
  ]);
  return { image, steps, users };
}

async function removeImage(image: ImageInspect): Promise<void> {
  const names = image.RepoTags.length === 0 ? [shortId(image.Id)] : image.RepoTags;
  if (!(await confirm({ title: 'Remove this image?', lines: names, word: 'Remove' }))) return;
  for (const name of image.RepoTags.length === 0 ? [image.Id] : image.RepoTags) {
    await call('DELETE', `/images/${encodeURIComponent(name)}`);
  }
  notify(`Removed ${names.join(', ')}`);
  go('images');
}
