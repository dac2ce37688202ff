import type { JSX } from 'preact';
import { useState } from 'preact/hooks';

import { messageOfError, open } from '../api/request.ts';
import { bytesOf, jsonLines } from '../api/streams.ts';
import { notify } from '../parts/notices.tsx';
import { LayerList, withLine, type Layers, type Progress } from './progress.tsx';

/** Pulls an image, with the progress of each layer. */
export function PullForm(): JSX.Element {
  const [name, setName] = useState('');
  const [layers, setLayers] = useState<Layers | undefined>(undefined);
  const pull = async (): Promise<void> => {
    const wanted = name.trim();
    if (wanted === '') return;
    setLayers(new Map());
    try {
      await pullImage(wanted, (line) => setLayers((before = new Map()) => withLine(before, line)));
      notify(`Pulled ${wanted}`);
      setName('');
    } catch (error) {
      notify(messageOfError(error), { isBad: true });
    }
    setLayers(undefined);
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

async function pullImage(name: string, onProgress: (progress: Progress) => void): Promise<void> {
  const hasTag = /[:@][^/]*$/.test(name);
  const query = { fromImage: name, ...(!hasTag && { tag: 'latest' }) };
  for await (const line of jsonLines<Progress>(bytesOf(await open('POST', '/images/create', { query })))) {
    if (line.error !== undefined) throw new Error(line.error);
    onProgress(line);
  }
}
