import type { Summary } from '@gantry/client/containers.ts';
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';

import { countText } from '../parts/texts.ts';
import { act, removeContainers, type Action } from './actions.ts';

const WORDS: readonly (readonly [Action, string])[] = [
  ['start', 'Start'],
  ['stop', 'Stop'],
  ['restart', 'Restart'],
];

type Props = { chosen: readonly Summary[]; done: () => void };

/** Actions on the chosen containers. */
export function ChosenActions({ chosen, done }: Props): JSX.Element {
  const [isBusy, setBusy] = useState(false);
  /** The choice stays after a question that was answered by Cancel. */
  const run = async (work: () => Promise<boolean | void>): Promise<void> => {
    setBusy(true);
    const isDone = await work();
    setBusy(false);
    if (isDone !== false) done();
  };
  const isOff = isBusy || chosen.length === 0;
  return (
    <div class="actions" role="group" aria-label="Actions on chosen containers">
      {WORDS.map(([action, word]) => (
        <button
          key={action}
          type="button"
          disabled={isOff}
          onClick={() =>
            void run(
              async () =>
                await act(
                  action,
                  chosen.filter((one) => isFit(action, one)),
                ),
            )
          }
        >
          {word}
        </button>
      ))}
      <button
        type="button"
        class="danger"
        disabled={isOff}
        onClick={() => void run(async () => await removeContainers(chosen))}
      >
        Remove
      </button>
      <span class="soft">{chosen.length === 0 ? '' : `${countText(chosen.length, 'container')} chosen`}</span>
    </div>
  );
}

/** A stop of a stopped container would offer to start it again. */
function isFit(action: Action, { State }: Summary): boolean {
  const runs = State === 'running' || State === 'restarting' || State === 'paused';
  return action === 'start' ? !runs : action === 'stop' ? runs : true;
}
