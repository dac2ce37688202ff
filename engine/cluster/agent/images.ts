import { familiarReference, parseReference, withDefaultTag } from '../../images/names/reference.ts';
import { pullImages } from '../../images/transfers/pull.ts';
import { EngineError } from '../../lib/errors.ts';
import { messageOf } from '../../lib/failure-message.ts';
import { ANONYMOUS, parseRegistryAuth } from '../../registry/auth/credentials.ts';
import type { AgentNeeds } from './needs.ts';

type Pull = { readonly done: Promise<void>; readonly abort: AbortController; waiting: number };

/** An id; its image cannot be pulled. */
const ID = /^(?:sha256:)?[0-9a-f]{64}$/;

/** Brings the images of tasks: those that want the same one at the same time share a pull. */
export class TaskImages {
  readonly #engine: AgentNeeds;
  readonly #underWay = new Map<string, Pull>();

  constructor(engine: AgentNeeds) {
    this.#engine = engine;
  }

  /**
   * The newest image of this name, or the one that is here where the registry does not give it. Throws `notFound` with
   * the reason of the registry where there is none.
   */
  async bring(name: string, auth: string | undefined, signal: AbortSignal): Promise<void> {
    if (ID.test(name)) return void this.#engine.images.find(name);
    const { digest } = parseReference(name);
    if (digest !== undefined && this.#isHere(name)) return;
    try {
      await this.#pull(name, auth, signal);
    } catch (error) {
      signal.throwIfAborted();
      const reason = messageOf(error);
      if (!this.#isHere(name)) {
        const reference = familiarReference(withDefaultTag(parseReference(name)));
        throw new EngineError('notFound', `No such image: ${reference} (${reason})`, { cause: error });
      }
      this.#engine.log.warn(
        { err: error, image: name },
        'the image of a task is not pulled: the one that is here is used',
      );
    }
  }

  /** Ends with the last task that waits for it. */
  async #pull(name: string, auth: string | undefined, signal: AbortSignal): Promise<void> {
    const key = JSON.stringify([name, auth]);
    let pull = this.#underWay.get(key);
    if (pull === undefined) {
      const abort = new AbortController();
      const done = this.#begin(name, auth, abort.signal).finally(() => this.#underWay.delete(key));
      done.catch(() => undefined); // told to those who wait for it
      pull = { done, abort, waiting: 0 };
      this.#underWay.set(key, pull);
    }
    pull.waiting += 1;
    const left = Promise.withResolvers<never>();
    const leave = (): void => left.reject(signal.reason);
    signal.addEventListener('abort', leave, { once: true });
    try {
      await Promise.race([pull.done, left.promise]);
    } finally {
      signal.removeEventListener('abort', leave);
      pull.waiting -= 1;
      if (pull.waiting === 0) pull.abort.abort();
    }
  }

  async #begin(name: string, auth: string | undefined, signal: AbortSignal): Promise<void> {
    await pullImages(this.#engine, {
      reference: withDefaultTag(parseReference(name)),
      credentials: auth === undefined ? ANONYMOUS : parseRegistryAuth(auth),
      report: () => undefined,
      signal,
    });
  }

  #isHere(name: string): boolean {
    try {
      this.#engine.images.find(name);
      return true;
    } catch (error) {
      if (error instanceof EngineError && error.kind === 'notFound') return false;
      throw error;
    }
  }
}
