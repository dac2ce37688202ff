import { refuseIf } from '../../lib/errors.ts';
import { AwaitedMap } from '../awaited-map.ts';
import { GrpcError, StatusCode } from '../wire/status.ts';
import type { Session } from './session.ts';

/** A build may be asked for before its session is there. */
const MAX_WAIT_MS = 15_000;

/** The sessions of clients, by their ids. */
export class Sessions {
  readonly #open = new AwaitedMap<Session>();

  /** Throws for an id that is taken. */
  refuse(id: string): void {
    refuseIf(id === '', 'the session has no id');
    refuseIf(this.#open.has(id), 'the session is already open');
  }

  add(session: Session): void {
    this.#open.set(session.id, session);
    session.closed.addEventListener('abort', () => this.#open.delete(session.id), { once: true });
  }

  async find(id: string, signal: AbortSignal): Promise<Session> {
    const session = await this.#open.find(id, MAX_WAIT_MS, signal);
    if (session === undefined)
      throw new GrpcError(StatusCode.UNAVAILABLE, `no active session for ${JSON.stringify(id)}`);
    return session;
  }
}
