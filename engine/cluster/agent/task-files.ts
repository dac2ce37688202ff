import { EngineError } from '../../lib/errors.ts';
import type { FromNode } from '../wire/schemas.ts';
import type { FileMessage, WantFileMessage } from '../wire/task-messages.ts';

type Send = (message: FromNode) => void;
type Wanted = Pick<WantFileMessage, 'task' | 'kind' | 'id'>;
type Waiting = Readonly<{ wanted: Wanted; answered: PromiseWithResolvers<FileMessage> }>;

/**
 * Asks the leader for the data of secrets and configs, one after the other: a node that starts many tasks must not be sent
 * more than it can read. A new session asks again for the one that has no answer.
 */
export class TaskFiles {
  readonly #waiting: Waiting[] = [];
  #send: Send | undefined;

  /** A session begins; `send` is undefined for a leader of an earlier version. */
  begin(send: Send | undefined): void {
    this.#send = send;
    this.#ask();
  }

  /** Returns the data for a task. Throws `failed` if the leader refuses, and the signal's reason after the signal. */
  async get(wanted: Wanted, signal: AbortSignal): Promise<FileMessage & { data: string }> {
    signal.throwIfAborted();
    const waiting: Waiting = { wanted, answered: Promise.withResolvers() };
    const leave = (): void => {
      waiting.answered.reject(signal.reason);
      this.#remove(waiting);
    };
    signal.addEventListener('abort', leave, { once: true });
    this.#waiting.push(waiting);
    if (this.#waiting.length === 1) this.#ask();
    try {
      const answer = await waiting.answered.promise;
      if (answer.data !== undefined) return { ...answer, data: answer.data };
      const { kind } = wanted;
      throw new EngineError('failed', `unable to get ${kind} from ${kind} store: ${answer.refusal ?? 'no data'}`);
    } finally {
      signal.removeEventListener('abort', leave);
    }
  }

  /** Handles an answer; ignores one that nobody waits for any more. */
  take(message: FileMessage): void {
    const waiting = this.#waiting.find(
      ({ wanted }) => wanted.task === message.task && wanted.kind === message.kind && wanted.id === message.id,
    );
    if (waiting === undefined) return;
    waiting.answered.resolve(message);
    this.#remove(waiting);
  }

  #remove(waiting: Waiting): void {
    const at = this.#waiting.indexOf(waiting);
    if (at < 0) return;
    this.#waiting.splice(at, 1);
    if (at === 0) this.#ask();
  }

  #ask(): void {
    const first = this.#waiting[0];
    if (first !== undefined) this.#send?.({ say: 'wantFile', ...first.wanted });
  }
}
