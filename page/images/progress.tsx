import type { JSX } from 'preact';
import { useState } from 'preact/hooks';

import { messageOfError } from '../api/request.ts';
import { bytesOf, jsonLines } from '../api/streams.ts';
import { notify } from '../parts/notices.tsx';
import { sizeText } from '../parts/texts.ts';

/** A line of the answer to a pull, a push or a build. */
export type Progress = Readonly<{
  id?: string;
  status?: string;
  stream?: string;
  error?: string;
  progressDetail?: Readonly<{ current?: number; total?: number }>;
}>;
type Layers = ReadonlyMap<string, Progress>;
/** Shows a transfer from its answer to its end, and tells the end. True if it succeeded. */
type Follow = (answer: Promise<Response>, success: string) => Promise<boolean>;

/** The layers of a transfer under way, each with its last line; undefined without one. */
export function useTransfer(): { layers: Layers | undefined; follow: Follow } {
  const [layers, setLayers] = useState<Layers | undefined>(undefined);
  const follow: Follow = async (answer, success) => {
    setLayers(new Map());
    try {
      for await (const line of jsonLines<Progress>(bytesOf(await answer))) {
        if (line.error !== undefined) throw new Error(line.error);
        const { id } = line;
        if (id !== undefined) setLayers((before) => new Map(before).set(id, line));
      }
      notify(success);
      return true;
    } catch (error) {
      notify(messageOfError(error), { isBad: true });
      return false;
    } finally {
      setLayers(undefined);
    }
  };
  return { layers, follow };
}

/** Layers on their way, each with its state. */
export function LayerList({ layers }: { layers: Layers }): JSX.Element {
  return (
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
  );
}
