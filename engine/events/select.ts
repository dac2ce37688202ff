import { labelsMatch, type Filters } from '../http/values/filters.ts';
import { scopeOf, type EngineEvent } from './events.ts';

/** Kinds of objects. A filter named after a kind selects objects by id or name. */
const KINDS = ['container', 'volume', 'network', 'daemon', 'plugin', 'node', 'service', 'secret', 'config'] as const;

export const EVENT_FILTERS: readonly string[] = ['event', 'image', 'label', 'type', 'scope', ...KINDS];

/** Actions with a detail, as in dockerd: `exec_start: sh -c true`. */
const WITH_DETAILS = ['exec_create', 'exec_start', 'health_status'];

/**
 * Whether an event passes the filters of GET /events. As in dockerd it has to match one value of each key, so
 * `container=web` also hides the events of all images and networks.
 */
export function passes(filters: Filters, { type, action, id, attributes }: EngineEvent): boolean {
  const name = attributes.name ?? '';
  return (
    matches(filters.get('type'), (wanted) => wanted === type) &&
    matches(filters.get('event'), (wanted) => isAction(wanted, action)) &&
    matches(filters.get('scope'), (wanted) => wanted === scopeOf(type)) &&
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

/** An id, a name, or a prefix of one; the empty one matches all, as in dockerd. */
function beginsWith(wanted: string, id: string, name: string): boolean {
  return id.startsWith(wanted) || name.startsWith(wanted);
}

/** Matches an image's id, its name, or its name without the tag. */
function isImage(wanted: string, id: string, name = ''): boolean {
  return (
    [id, name, name.replace(/:[^:/]+$/, '')].includes(wanted) || (wanted !== '' && id.startsWith(`sha256:${wanted}`))
  );
}
