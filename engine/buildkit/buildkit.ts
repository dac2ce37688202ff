import type { Duplex } from 'node:stream';

import type { Engine } from '../engine.ts';
import { statusOf } from './frontend/errors.ts';
import { bridgeMethods } from './services/bridge.ts';
import { cacheMethods } from './services/caches.ts';
import { controlMethods } from './services/control.ts';
import { otherMethods } from './services/other.ts';
import { Session } from './session/session.ts';
import { Sessions } from './session/sessions.ts';
import { Solves } from './solves.ts';
import { GrpcServer } from './wire/server.ts';

/** BuildKit's protocol in front of the engine's builder. It is loaded with the first client that speaks it. */
export class BuildKit {
  readonly #sessions = new Sessions();
  readonly #server: GrpcServer;

  constructor(engine: Engine) {
    const solves = new Solves(engine.clock);
    const methods = new Map([
      ...controlMethods(engine, this.#sessions, solves),
      ...bridgeMethods(engine, this.#sessions, solves),
      ...cacheMethods(engine),
      ...otherMethods,
    ]);
    this.#server = new GrpcServer(methods, (failure) => {
      const status = statusOf(failure);
      if (status !== failure) engine.log.debug({ err: failure }, 'a call of a builder failed');
      return status;
    });
  }

  /** A client that asks. */
  serve(connection: Duplex): void {
    this.#server.accept(connection);
  }

  /** Throws if no session can be opened so. */
  refuseSession(id: string): void {
    this.#sessions.refuse(id);
  }

  /** A client that is asked, on the same connection. */
  openSession(connection: Duplex, given: ConstructorParameters<typeof Session>[1]): Session {
    const session = new Session(connection, given);
    this.#sessions.add(session);
    return session;
  }
}
