import type { ApiVersion } from '../http/versions/api-version.ts';
import { isBelow } from '../http/versions/api-version.ts';
import type { EngineEvent } from './events.ts';

/** The events as clients of one version know them. */
export type EventForm = Readonly<{
  /** The event in the client's terms; undefined for one that is hidden from it. The same object at each call. */
  view: (event: EngineEvent) => EngineEvent | undefined;
  /** Whether the lines have the fields `status`, `id` and `from` too. */
  hasOldFields: boolean;
  /** The content type of an answer to a client that accepts no other one. */
  contentType: string;
}>;

/** Both are `copy` in the specification of 1.24. */
const COPIES = ['archive-path', 'extract-to-dir'];

const renamed = new WeakMap<EngineEvent, EngineEvent>();

export function eventForm(version: ApiVersion): EventForm {
  const view = isBelow(version, '1.25') ? withCopy : isBelow(version, '1.46') ? shown : (event: EngineEvent) => event;
  const isOld = isBelow(version, '1.52');
  return { view, hasOldFields: isOld, contentType: isOld ? 'application/json' : 'application/jsonl' };
}

function shown(event: EngineEvent): EngineEvent | undefined {
  return event.type === 'image' && event.action === 'create' ? undefined : event;
}

function withCopy(event: EngineEvent): EngineEvent | undefined {
  if (event.type !== 'container' || !COPIES.includes(event.action)) return shown(event);
  const known = renamed.get(event);
  if (known !== undefined) return known;
  const copy = { ...event, action: 'copy' };
  renamed.set(event, copy);
  return copy;
}
