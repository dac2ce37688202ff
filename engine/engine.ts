import type { Logger } from 'pino';

import type { Config } from './config/config.ts';
import type { Database } from './db/database.ts';
import type { Events } from './events/events.ts';
import type { Clock } from './lib/clock.ts';
import type { KeyLock } from './lib/key-lock.ts';

/** The parts of the engine. Operations name the few that they use; only routes and `start.ts` see all of them. */
export type Engine = Readonly<{
  /** Replaced as a whole by a reload: read it when it is needed, keep no copy. */
  config: Config;
  clock: Clock;
  log: Logger;
  db: Database;
  /** One key per object, its full id. */
  locks: KeyLock;
  events: Events;
}>;
