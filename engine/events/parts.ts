import type { Database } from '../db/database.ts';
import type { Clock } from '../lib/clock.ts';
import { Events } from './events.ts';

type Needs = { clock: Clock; db: Database; log: ConstructorParameters<typeof Events>[2] };
type EventParts = { events: Events };

/** The parts that this domain adds to the engine. */
export function eventParts({ clock, db, log }: Needs): EventParts {
  return { events: new Events(db, clock, log) };
}
