import type { Duplex } from 'node:stream';

import type { Engine } from '../engine.ts';
import { statusOf } from './frontend/errors.ts';
import { History } from './history/history.ts';
import { OpenConnections } from './open-connections.ts';
import { bridgeMethods } from './services/bridge.ts';
import { cacheMethods } from './services/caches.ts';
import { controlMethods } from './services/control.ts';
import { historyMethods } from './services/history.ts';
import { otherMethods } from './services/other.ts';
import { carriedSession } from './session/carried-session.ts';
import { describedSession } from './session/described-session.ts';
import { Session } from './session/session.ts';
import { Sessions } from './session/sessions.ts';
import { Solves } from './solves.ts';
import { GrpcServer } from './wire/server.ts';

/** BuildKit's protocol in front of the engine's builder. It is loaded with the first client that speaks it. */
export class BuildKit {
  readonly #sessions = new Sessions();
  readonly #server: GrpcServer;
  readonly #callers = new OpenConnections('connections of builders');
  readonly #servers = new OpenConnections('sessions of builds');

  constructor(engine: Engine) {
    const solves = new Solves(engine.clock);
    const history = new History(engine);
    const methods = new Map([
      ...controlMethods(engine, { sessions: this.#sessions, solves, history }),
      ...historyMethods(history),
      ...bridgeMethods(engine, this.#sessions, solves),
      ...cacheMethods(engine),
      ...otherMethods,
      [
        '/moby.buildkit.v1.Control/Session',
        carriedSession((connection, { headers, client }) => {
          const described = describedSession(headers, client);
          this.refuseSession(described.id, client);
          return this.openSession(connection, client, described);
        }),
      ],
    ]);
    this.#server = new GrpcServer(
      methods,
      (failure) => {
        const status = statusOf(failure);
        if (status !== failure) engine.log.debug({ err: failure }, 'a call of a builder failed');
        return status;
      },
      // Clients subtract the begin of a build under way from it.
      () => ({ 'buildkit-current-timestamp': engine.clock.now().toString() }),
    );
  }

  /** Throws if the client has too many connections. */
  refuseCaller(client: string | undefined): void {
    this.#callers.refuse(client);
  }

  /** A client that asks. */
  serve(connection: Duplex, client: string | undefined): void {
    this.#callers.add(connection, client);
    this.#server.accept(connection, client);
  }

  /** Throws if no session can be opened so. */
  refuseSession(id: string, client: string | undefined): void {
    this.#sessions.refuse(id);
    this.#servers.refuse(client);
  }

  /** A client that is asked, on the same connection. */
  openSession(
    connection: Duplex,
    client: string | undefined,
    given: ConstructorParameters<typeof Session>[1],
  ): Session {
    this.#servers.add(connection, client);
    const session = new Session(connection, given);
    this.#sessions.add(session);
    return session;
  }
}
