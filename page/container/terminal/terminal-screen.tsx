import type { Inspect } from '@gantry/client/containers.ts';
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';

import { isReadOnly } from '../../api/request.ts';
import { useStore } from '../../parts/store.ts';
import { Shell } from './shell.tsx';

/** Shells in a container, side by side in tabs. */
export function TerminalScreen({ container: { Id, State } }: { container: Inspect }): JSX.Element {
  const readOnly = useStore(isReadOnly);
  const [shells, setShells] = useState<readonly number[]>([1]);
  const [now, setNow] = useState(1);
  if (readOnly) return <p class="empty">This page is read-only: it opens no shell.</p>;
  if (!State.Running || State.Paused)
    return <p class="empty">The container does not run, so no shell can be opened.</p>;
  const add = (): void => {
    const next = Math.max(0, ...shells) + 1;
    setShells([...shells, next]);
    setNow(next);
  };
  const close = (shell: number): void => {
    const left = shells.filter((one) => one !== shell);
    setShells(left);
    if (now === shell) setNow(left.at(-1) ?? 0);
  };
  return (
    <>
      <div class="bar">
        {shells.map((shell) => (
          <span key={shell} class="choice">
            <button type="button" aria-pressed={shell === now} onClick={() => setNow(shell)}>
              Shell {shell}
            </button>
            <button type="button" aria-label={`Close shell ${shell}`} onClick={() => close(shell)}>
              ×
            </button>
          </span>
        ))}
        <button type="button" onClick={add}>
          New shell
        </button>
      </div>
      {shells.map((shell) => (
        <Shell key={shell} containerId={Id} isShown={shell === now} />
      ))}
    </>
  );
}
