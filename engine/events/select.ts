import { labelsMatch, type Filters } from '../http/filters.ts';
import { EngineError } from '../lib/errors.ts';
import type { EngineEvent } from './events.ts';

export const EVENT_FILTERS = [
  'container',
  'event',
  'image',
  'label',
  'type',
  'volume',
  'network',
  'daemon',
  'plugin',
  'scope',
];

/** Whether an event passes the filters of GET /events. */
export function passes(filters: Filters, { type, action, id, attributes }: EngineEvent): boolean {
  const isOf = (kind: string): boolean => {
    const wanted = filters.get(kind);
    if (wanted === undefined) return true;
    if (kind === 'image' && type === 'container') return matchesImage(wanted, attributes.image ?? '');
    if (kind === 'image' && type === 'image')
      return matchesImage(wanted, id) || matchesImage(wanted, attributes.name ?? '');
    if (type === kind) return matchesObject(wanted, id, attributes.name ?? '');
    // An event of a network or a volume that concerns a container is one of the container too.
    return kind === 'container' && matchesObject(wanted, attributes.container ?? '', '');
  };
  const types = filters.get('type');
  const actions = filters.get('event');
  return (
    (types === undefined || types.has(type)) &&
    (actions === undefined || [...actions].some((wanted) => action === wanted || action.startsWith(`${wanted}:`))) &&
    labelsMatch(filters.get('label'), attributes) &&
    ['container', 'image', 'volume', 'network', 'daemon'].every(isOf)
  );
}

/** UNIX seconds with a fraction, RFC 3339, or a length of time before now. Throws `invalid`. */
export function parseTime(name: string, text: string, now: Temporal.Instant): Temporal.Instant {
  const seconds = /^(\d{1,12})(?:\.(\d{1,9}))?$/.exec(text);
  if (seconds !== null) {
    return new Temporal.Instant(BigInt(seconds[1]!) * 1_000_000_000n + BigInt((seconds[2] ?? '').padEnd(9, '0')));
  }
  const ago = /^(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?$/.exec(text);
  if (ago !== null && text !== '') {
    return now.subtract({ hours: Number(ago[1] ?? 0), minutes: Number(ago[2] ?? 0), seconds: Number(ago[3] ?? 0) });
  }
  try {
    return Temporal.Instant.from(text);
  } catch (error) {
    throw new EngineError('invalid', `invalid value for "${name}": ${text}`, { cause: error });
  }
}

function matchesObject(wanted: ReadonlySet<string>, id: string, name: string): boolean {
  return [...wanted].some(
    (text) => text !== '' && (id.startsWith(text) || name === text || name === text.replace(/^\//, '')),
  );
}

function matchesImage(wanted: ReadonlySet<string>, image: string): boolean {
  const withoutTag = image.replace(/:[^:/]+$/, '');
  return [...wanted].some((text) => text === image || text === withoutTag || image.startsWith(`sha256:${text}`));
}
