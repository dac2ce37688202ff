import type { Inspect } from '@gantry/client/containers.ts';
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';

import { isReadOnly } from '../api/request.ts';
import { go } from '../app/route.ts';
import { act, removeContainers, type Action } from '../containers/actions.ts';
import { containers } from '../containers/containers.ts';
import { useStore } from '../parts/store.ts';

/** Start, stop and so on, as the state allows. */
export function ContainerActions({ container: { Id, State } }: { container: Inspect }): JSX.Element | null {
  const all = useStore(containers);
  const readOnly = useStore(isReadOnly);
  const [isBusy, setBusy] = useState(false);
  const summary = all?.get(Id);
  if (summary === undefined || readOnly) return null;
  const run = async (work: () => Promise<unknown>): Promise<void> => {
    setBusy(true);
    await work();
    setBusy(false);
  };
  const remove = async (): Promise<void> => {
    if (await removeContainers([summary])) go('containers');
  };
  return (
    <div class="actions" role="group" aria-label="Actions">
      {actionsOf(State.Status).map(([action, word]) => (
        <button
          key={action}
          type="button"
          disabled={isBusy}
          onClick={() => void run(async () => await act(action, [summary]))}
        >
          {word}
        </button>
      ))}
      <button type="button" class="danger" disabled={isBusy} onClick={() => void run(remove)}>
        Remove
      </button>
    </div>
  );
}

function actionsOf(status: string): readonly (readonly [Action, string])[] {
  switch (status) {
    case 'running':
      return [
        ['stop', 'Stop'],
        ['restart', 'Restart'],
        ['pause', 'Pause'],
      ];
    case 'restarting':
      return [['stop', 'Stop']];
    case 'paused':
      return [['unpause', 'Resume']];
    default:
      return [['start', 'Start']];
  }
}
