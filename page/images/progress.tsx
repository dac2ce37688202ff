import type { JSX } from 'preact';

import { sizeText } from '../parts/texts.ts';

/** A line of the answer to a pull, a push or a build. */
export type Progress = Readonly<{
  id?: string;
  status?: string;
  stream?: string;
  error?: string;
  progressDetail?: Readonly<{ current?: number; total?: number }>;
}>;
export type Layers = ReadonlyMap<string, Progress>;

/** The layers with one more line. */
export function withLine(layers: Layers, line: Progress): Layers {
  return line.id === undefined ? layers : new Map(layers).set(line.id, line);
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
