import type { JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';

import { Store, useStore } from './store.ts';

type Question = Readonly<{
  title: string;
  /** The objects that go, one a line. */
  lines: readonly string[];
  note?: string;
  word: string;
  answer: (isSure: boolean) => void;
}>;

const MAX_LINES = 12;
const question = new Store<Question | undefined>(undefined);

/** Asks before something that cannot be undone. */
export async function confirm(asked: Omit<Question, 'answer'>): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  question.set({ ...asked, answer: resolve });
  const isSure = await promise;
  question.set(undefined);
  return isSure;
}

/** The open question, if there is one. */
export function ConfirmDialog(): JSX.Element | null {
  const asked = useStore(question);
  return asked === undefined ? null : <Dialog asked={asked} />;
}

function Dialog({ asked: { title, lines, note, word, answer } }: { asked: Question }): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  const more = lines.length - MAX_LINES;
  return (
    <dialog ref={dialog} aria-labelledby="question" onClose={() => answer(dialog.current?.returnValue === 'yes')}>
      <h2 id="question">{title}</h2>
      {lines.length > 0 && (
        <ul>
          {lines.slice(0, MAX_LINES).map((line) => (
            <li key={line}>
              <bdi>{line}</bdi>
            </li>
          ))}
          {more > 0 && <li>and {more} more</li>}
        </ul>
      )}
      {note !== undefined && <p>{note}</p>}
      <form method="dialog" class="actions">
        <button type="button" onClick={() => dialog.current?.close('yes')} class="danger">
          {word}
        </button>
        <button type="button" onClick={() => dialog.current?.close('no')}>
          Cancel
        </button>
      </form>
    </dialog>
  );
}
