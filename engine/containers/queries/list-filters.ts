import { anyValue, booleanFilter, labelsMatch, textFilter, type Filters } from '../../http/values/filters.ts';
import { EngineError } from '../../lib/errors.ts';
import { listedPorts } from '../../networks/present.ts';
import { wireStatus } from '../present.ts';
import type { ListQuery } from '../schema.ts';
import { exitCodeOf } from '../state.ts';
import type { Container } from '../store.ts';
import type { InspectNeeds } from './inspect.ts';

export const CONTAINER_FILTERS = [
  ...['exited', 'status', 'label', 'isolation', 'ancestor', 'before', 'since', 'volume', 'network', 'id', 'name'],
  ...['health', 'publish', 'expose', 'is-task'],
];

/** The allowed values of a filter. */
const VALUES: Readonly<Record<string, (value: string) => boolean>> = {
  status: among('created', 'restarting', 'running', 'paused', 'exited', 'dead', 'removing'),
  exited: (value) => /^[+-]?\d+$/.test(value),
  health: among('none', 'starting', 'healthy', 'unhealthy'),
};

type Test = (container: Container) => boolean;
type PortRange = Readonly<{ first: number; last: number; protocol: string }>;

/** Whether a container matches every filter; one value of each is enough. Throws `invalid` for a bad filter. */
export function containerFilter(engine: InspectNeeds, filters: Filters, query: ListQuery): Test {
  for (const [key, isValid] of Object.entries(VALUES)) {
    for (const value of filters.get(key) ?? []) {
      if (!isValid(value)) throw new EngineError('invalid', `Invalid filter '${key}=${value}'`);
    }
  }
  const isPlaced = placeFilter(engine, filters, query);
  const hasName = textFilter(filters, 'name');
  const hasPort = portFilter(engine, filters);
  const ancestors = ancestorsOf(engine, filters.get('ancestor'));
  const wantsTasks = booleanFilter(filters, 'is-task') === true;
  return (container) =>
    !wantsTasks && // there is no cluster yet
    isPlaced(container) &&
    anyValue(filters, 'status', (status) => wireStatus(container.state) === status) &&
    anyValue(filters, 'exited', (code) => hasExited(container, Number(code))) &&
    labelsMatch(filters.get('label'), container.config.Labels) &&
    anyValue(filters, 'id', (id) => container.id.startsWith(id)) &&
    (hasName(container.name) || hasName(`/${container.name}`)) &&
    anyValue(filters, 'volume', (volume) => hasVolume(container, volume)) &&
    anyValue(filters, 'network', (network) => isIn(engine, container, network)) &&
    hasPort(container) &&
    anyValue(filters, 'health', (health) => (engine.health.of(container.id)?.status ?? 'none') === health) &&
    (ancestors === undefined || ancestors.has(container.imageId));
}

function among(...values: string[]): (value: string) => boolean {
  return (value) => values.includes(value);
}

/** The filters `before` and `since`, by the order of creation. */
function placeFilter(engine: InspectNeeds, filters: Filters, query: ListQuery): Test {
  const order = new Map(engine.containers.all().map(({ id }, index) => [id, index]));
  const positionsOf = (refs: Iterable<string>): number[] => [...refs].map((ref) => order.get(idOf(engine, ref))!);
  const after = positionsOf([...(filters.get('since') ?? []), ...(query.since ? [query.since] : [])]);
  const before = positionsOf([...(filters.get('before') ?? []), ...(query.before ? [query.before] : [])]);
  return ({ id }) =>
    after.every((position) => order.get(id)! > position) && before.every((position) => order.get(id)! < position);
}

/** An unknown container is a bad parameter, not a 404 of the list. */
function idOf({ containers }: InspectNeeds, ref: string): string {
  try {
    return containers.find(ref).id;
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    throw new EngineError('invalid', `no such container ${ref}`, { cause: error });
  }
}

function hasExited({ state }: Container, code: number): boolean {
  return state.status === 'exited' && exitCodeOf(state) === code;
}

/** Matches a volume by its name, by its path in the container, or by the host's folder. */
function hasVolume({ mounts }: Container, wanted: string): boolean {
  return mounts.some(({ type, name, source, destination }) =>
    [destination, type === 'volume' ? name : source].includes(wanted),
  );
}

/** The images, and all images made from them. */
function ancestorsOf(
  { images }: InspectNeeds,
  wanted: ReadonlySet<string> | undefined,
): ReadonlySet<string> | undefined {
  if (wanted === undefined) return undefined;
  const found = new Set<string>();
  const add = (id: string): void => {
    found.add(id);
    for (const child of images.childrenOf(id)) add(child.id);
  };
  for (const ref of wanted) {
    try {
      add(images.find(ref).id);
    } catch (error) {
      // An unknown image has no descendants.
      if (!(error instanceof EngineError)) throw error;
    }
  }
  return found;
}

function isIn({ networks }: InspectNeeds, { id, attachments }: Container, wanted: string): boolean {
  return (
    Object.entries(attachments).some(([name, { networkId }]) => name === wanted || isId(networkId, wanted)) ||
    networks.endpointsOf(id).some(({ networkName, networkId }) => networkName === wanted || isId(networkId, wanted))
  );
}

function isId(networkId: string, wanted: string): boolean {
  return networkId !== '' && networkId.startsWith(wanted);
}

/** As in dockerd: a port of either filter is enough, and only the ports in a list of containers count. */
function portFilter({ networks }: InspectNeeds, filters: Filters): Test {
  const [published, exposed] = ['publish', 'expose'].map((key) =>
    [...(filters.get(key) ?? [])].map((written) => portRange(key, written)),
  ) as [PortRange[], PortRange[]];
  if (published.length + exposed.length === 0) return () => true;
  return ({ id, config }) =>
    listedPorts({
      endpoints: networks.endpointsOf(id),
      exposed: networks.exposedPorts(id, config.ExposedPorts),
    }).some(
      ({ PublicPort, PrivatePort, Type }) =>
        published.some((range) => isWithin(range, PublicPort, Type)) ||
        exposed.some((range) => isWithin(range, PrivatePort, Type)),
    );
}

/** `80`, `80/udp`, `80-90/tcp`. */
function portRange(key: string, written: string): PortRange {
  const [, first = '', last = first, protocol = 'tcp'] = /^(\d{1,5})(?:-(\d{1,5}))?(?:\/(\w+))?$/.exec(written) ?? [];
  if (first === '' || Number(first) > Number(last) || Number(last) > 65_535) {
    throw new EngineError('invalid', `error while looking up for ${key} ${written}: invalid port or range of ports`);
  }
  return { first: Number(first), last: Number(last), protocol: protocol.toLowerCase() };
}

function isWithin({ first, last, protocol }: PortRange, port: number | undefined, type: string): boolean {
  return port !== undefined && port >= first && port <= last && type === protocol;
}
