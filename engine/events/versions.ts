import type { ApiVersion } from '../http/versions/api-version.ts';
import { isBelow } from '../http/versions/api-version.ts';
import type { EngineEvent } from './events.ts';

/** Both are `copy` in the specification of 1.24. */
const COPIES = ['archive-path', 'extract-to-dir'];

const renamed = new WeakMap<EngineEvent, EngineEvent>();

/** The view of clients of this version on the events; a view of one event is always the same object. */
export function eventView(version: ApiVersion): (event: EngineEvent) => EngineEvent {
  return isBelow(version, '1.25') ? withCopy : (event) => event;
}

function withCopy(event: EngineEvent): EngineEvent {
  if (event.type !== 'container' || !COPIES.includes(event.action)) return event;
  const known = renamed.get(event);
  if (known !== undefined) return known;
  const copy = { ...event, action: 'copy' };
  renamed.set(event, copy);
  return copy;
}
