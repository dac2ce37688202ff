import type { Engine } from '../engine.ts';
import { Events } from './events.ts';

type Needs = Pick<Engine, 'clock' | 'db'> & { log: ConstructorParameters<typeof Events>[2] };
type EventParts = { events: Events };

/** The parts that this domain adds to the engine. */
export function eventParts({ clock, db, log }: Needs): EventParts {
  return { events: new Events(db, clock, log) };
}
