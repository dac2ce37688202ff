import { labelsMatch, type Filters } from '../http/filters.ts';
import type { EngineEvent } from './events.ts';

/** Kinds of objects; a filter of their name asks for the objects by id or name. */
const KINDS = ['container', 'volume', 'network', 'daemon', 'plugin', 'node', 'service', 'secret', 'config'] as const;

export const EVENT_FILTERS: readonly string[] = ['event', 'image', 'label', 'type', 'scope', ...KINDS];

/** Of these dockerd tells more than the word: `exec_start: sh -c true`. */
const WITH_DETAILS = ['exec_create', 'exec_start', 'health_status'];

/**
 * Whether an event passes the filters of GET /events, as in dockerd: it has to pass each key, and one of the key's
 * values. So `container=web` also hides the events of all images and networks.
 */
export function passes(filters: Filters, { type, action, id, attributes }: EngineEvent): boolean {
  const name = attributes.name ?? '';
  return (
    matches(filters.get('type'), (wanted) => wanted === type) &&
    matches(filters.get('event'), (wanted) => isAction(wanted, action)) &&
    matches(filters.get('scope'), (wanted) => wanted === 'local') &&
    matches(filters.get('image'), (wanted) => isImage(wanted, id, type === 'image' ? name : attributes.image)) &&
    KINDS.every((kind) => matches(filters.get(kind), (wanted) => beginsWith(wanted, id, name))) &&
    labelsMatch(filters.get('label'), attributes)
  );
}

function matches(wanted: ReadonlySet<string> | undefined, test: (text: string) => boolean): boolean {
  return wanted === undefined || wanted.size === 0 || [...wanted].some(test);
}

function isAction(wanted: string, action: string): boolean {
  return action === wanted || (WITH_DETAILS.includes(wanted) && action.startsWith(`${wanted}:`));
}

/** An id, a name, or the beginning of one; a name may have its slash. */
function beginsWith(wanted: string, id: string, name: string): boolean {
  return wanted !== '' && (id.startsWith(wanted) || name.startsWith(wanted.replace(/^\//, '')));
}

/** An image is meant by its id, by its name, and by its name without the tag. */
function isImage(wanted: string, id: string, name = ''): boolean {
  return (
    [id, name, name.replace(/:[^:/]+$/, '')].includes(wanted) || (wanted !== '' && id.startsWith(`sha256:${wanted}`))
  );
}
