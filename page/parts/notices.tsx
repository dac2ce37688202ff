import type { JSX } from 'preact';

import { messageOfError } from '../api/request.ts';
import { Store, useStore } from './store.ts';

type Notice = Readonly<{
  id: number;
  text: string;
  isBad: boolean;
  undo?: Readonly<{ word: string; run: () => void }>;
}>;

const SHOWN_MS = 8000;
const notices = new Store<readonly Notice[]>([]);
let lastId = 0;

/** Shows a message for some seconds; failures stay until they are closed. */
export function notify(text: string, options: { isBad?: boolean; undo?: Notice['undo'] } = {}): void {
  const { isBad = false, undo } = options;
  lastId += 1;
  const notice: Notice = { id: lastId, text, isBad, ...(undo !== undefined && { undo }) };
  notices.set([...notices.value.slice(-4), notice]);
  if (!isBad) setTimeout(() => close(notice.id), SHOWN_MS);
}

/** Runs an action of a person and shows its failure. Returns whether it succeeded. */
export async function attempt(action: () => Promise<unknown>): Promise<boolean> {
  try {
    await action();
    return true;
  } catch (error) {
    notify(messageOfError(error), { isBad: true });
    return false;
  }
}

function close(id: number): void {
  notices.set(notices.value.filter((one) => one.id !== id));
}

/** The messages that are shown now. */
export function Notices(): JSX.Element {
  return (
    <div class="notices" role="status">
      {useStore(notices).map(({ id, text, isBad, undo }) => (
        <p key={id} class={isBad ? 'notice bad' : 'notice'}>
          <bdi>{text}</bdi>
          {undo !== undefined && (
            <button
              type="button"
              onClick={() => {
                close(id);
                undo.run();
              }}
            >
              {undo.word}
            </button>
          )}
          <button type="button" aria-label="Close" onClick={() => close(id)}>
            ×
          </button>
        </p>
      ))}
    </div>
  );
}
