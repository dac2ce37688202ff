import type { JSX } from 'preact';
import { useState } from 'preact/hooks';

import { open } from '../api/request.ts';
import { LayerList, useTransfer } from './progress.tsx';

/** Pulls an image, with the progress of each layer. */
export function PullForm(): JSX.Element {
  const [name, setName] = useState('');
  const { layers, follow } = useTransfer();
  const pull = async (): Promise<void> => {
    const wanted = name.trim();
    if (wanted !== '' && (await follow(beginPull(wanted), `Pulled ${wanted}`))) setName('');
  };
  return (
    <>
      <form
        class="actions"
        onSubmit={(event) => {
          event.preventDefault();
          void pull();
        }}
      >
        <input
          type="text"
          placeholder="image to pull"
          aria-label="Image to pull"
          value={name}
          onInput={(event) => setName(event.currentTarget.value)}
        />
        <button type="submit" disabled={layers !== undefined}>
          Pull
        </button>
      </form>
      {layers !== undefined && <LayerList layers={layers} />}
    </>
  );
}

async function beginPull(name: string): Promise<Response> {
  const hasTag = /[:@][^/]*$/.test(name);
  return await open('POST', '/images/create', { query: { fromImage: name, ...(!hasTag && { tag: 'latest' }) } });
}
