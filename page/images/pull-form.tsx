import type { JSX } from 'preact';
import { useState } from 'preact/hooks';

import { messageOfError, open } from '../api/request.ts';
import { bytesOf, jsonLines } from '../api/streams.ts';
import { notify } from '../parts/notices.tsx';
import { sizeText } from '../parts/texts.ts';

type Progress = Readonly<{
  id?: string;
  status?: string;
  error?: string;
  progressDetail?: Readonly<{ current?: number; total?: number }>;
}>;

/** Pulls an image, with the progress of each layer. */
export function PullForm(): JSX.Element {
  const [name, setName] = useState('');
  const [layers, setLayers] = useState<ReadonlyMap<string, Progress> | undefined>(undefined);
  const pull = async (): Promise<void> => {
    const wanted = name.trim();
    if (wanted === '') return;
    setLayers(new Map());
    try {
      await pullImage(wanted, (progress) => {
        if (progress.id !== undefined) setLayers((before = new Map()) => new Map(before).set(progress.id!, progress));
      });
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
          placeholder="name:tag"
          aria-label="Image to pull"
          value={name}
          onInput={(event) => setName(event.currentTarget.value)}
        />
        <button type="submit" disabled={layers !== undefined}>
          Pull
        </button>
      </form>
      {layers !== undefined && (
        <ul class="layers" aria-label="Progress">
          {layers.size === 0 && <li class="soft">Asking the registry…</li>}
          {[...layers].map(([id, { status, progressDetail: { current = 0, total = 0 } = {} }]) => (
            <li key={id}>
              <code>{id}</code> <bdi>{status}</bdi>{' '}
              {total > 0 && (
                <>
                  <progress max={total} value={current} aria-label={`Layer ${id}`} /> {sizeText(current)} of{' '}
                  {sizeText(total)}
                </>
              )}
            </li>
          ))}
        </ul>
      )}
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
