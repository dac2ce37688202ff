import { parseFilters, labelsMatch, type Filters } from '../http/filters.ts';
import { EngineError } from '../lib/errors.ts';
import { networkModeOf, networkOfMode } from '../networks/mode.ts';
import { portsOf } from '../networks/present.ts';
import { aroundOf, type InspectNeeds } from './inspect.ts';
import { linkNames } from './links.ts';
import { presentSummary, wireStatus } from './present.ts';
import type { ListQuery, Summary } from './schema.ts';
import { exitCodeOf, isAlive } from './state.ts';
import type { Container, ContainerStore } from './store.ts';

const KEYS = [
  ...['exited', 'status', 'label', 'isolation', 'ancestor', 'before', 'since', 'volume', 'network', 'id', 'name'],
  ...['health', 'publish', 'expose', 'is-task'],
];
const STATUSES = new Set(['created', 'restarting', 'running', 'paused', 'exited', 'dead', 'removing']);

/** Newest first. Specification, endpoint 1. Throws `invalid` for filters that cannot be. */
export async function listContainers(engine: InspectNeeds, query: ListQuery): Promise<Summary[]> {
  const filters = parseFilters(query.filters, KEYS);
  for (const status of filters.get('status') ?? []) {
    if (!STATUSES.has(status)) throw new EngineError('invalid', `Invalid filter 'status=${status}'`);
  }
  for (const code of filters.get('exited') ?? []) {
    if (!/^-?\d+$/.test(code)) throw new EngineError('invalid', `Invalid filter 'exited=${code}'`);
  }
  const limit = query.limit ?? 0;
  const matches = matcher(engine, filters, query);
  // A filter on the state, and a limit, ask for the stopped ones as well.
  const all =
    query.all === true || limit > 0 || filters.has('status') || filters.has('exited') || query.since || query.before;
  const found = engine.containers
    .all()
    .toReversed()
    .filter(
      (container) =>
        (all ? true : isAlive(container.state) || container.state.status === 'restarting') && matches(container),
    );
  const chosen = limit > 0 ? found.slice(0, limit) : found;
  const names = linkNames(engine.containers);
  const shown = chosen.map((container) =>
    presentSummary(container, aroundOf(engine, container, false, names.get(container.id))),
  );
  return query.size === true ? await withSizes(engine, shown) : shown;
}

/** One after the other: each may take descriptors and a child of its own. */
async function withSizes(engine: InspectNeeds, summaries: readonly Summary[]): Promise<Summary[]> {
  const sized: Summary[] = [];
  for (const summary of summaries) {
    if (engine.containers.get(summary.Id) === undefined) continue; // removed meanwhile
    const { writableBytes, rootBytes } = await engine.layers.size(summary.Id);
    sized.push({ ...summary, SizeRw: writableBytes, SizeRootFs: rootBytes });
  }
  return sized;
}

function matcher(engine: InspectNeeds, filters: Filters, query: ListQuery): (container: Container) => boolean {
  const order = new Map(engine.containers.all().map(({ id }, index) => [id, index]));
  const positionOf = (refs: Iterable<string>): number[] =>
    [...refs].map((ref) => order.get(engine.containers.find(ref).id)!);
  const after = positionOf([...(filters.get('since') ?? []), ...(query.since ? [query.since] : [])]);
  const before = positionOf([...(filters.get('before') ?? []), ...(query.before ? [query.before] : [])]);
  const ancestors = ancestorsOf(engine, filters.get('ancestor'));
  return (container) =>
    after.every((position) => order.get(container.id)! > position) &&
    before.every((position) => order.get(container.id)! < position) &&
    any(filters, 'status', (status) => wireStatus(container.state) === status) &&
    any(
      filters,
      'exited',
      (code) => container.state.status === 'exited' && exitCodeOf(container.state) === Number(code),
    ) &&
    labelsMatch(filters.get('label'), container.config.Labels) &&
    any(filters, 'id', (id) => container.id.startsWith(id)) &&
    any(filters, 'name', (name) => nameMatches(container.name, name)) &&
    any(filters, 'volume', (volume) =>
      container.mounts.some((mount) => mount.name === volume || mount.destination === volume),
    ) &&
    any(filters, 'network', (network) => isIn(engine, container, network)) &&
    any(filters, 'publish', (port) => publishes(engine, container, port)) &&
    any(filters, 'expose', (port) =>
      Object.hasOwn(container.config.ExposedPorts ?? {}, port.includes('/') ? port : `${port}/tcp`),
    ) &&
    any(filters, 'health', (health) => health === 'none') &&
    any(filters, 'is-task', (wanted) => wanted === 'false' || wanted === '0') &&
    (ancestors === undefined || ancestors.has(container.imageId));
}

function any(filters: Filters, key: string, matches: (value: string) => boolean): boolean {
  const values = filters.get(key);
  return values === undefined || values.size === 0 || [...values].some(matches);
}

/** A pattern, as docker takes it; what is none is taken as it is. */
function nameMatches(name: string, wanted: string): boolean {
  try {
    return new RegExp(wanted).test(name) || new RegExp(wanted).test(`/${name}`);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return name.includes(wanted);
  }
}

/** The wanted images and everything that was made of them. */
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
      // An image that is not there is the ancestor of nothing.
      if (!(error instanceof EngineError)) throw error;
    }
  }
  return found;
}

function isIn({ networks }: InspectNeeds, { id, hostConfig }: Container, wanted: string): boolean {
  const isNamed = networkOfMode(networkModeOf(hostConfig.NetworkMode)) === wanted;
  const endpoints = networks.endpointsOf(id);
  return (
    isNamed || endpoints.some(({ networkName, networkId }) => networkName === wanted || networkId.startsWith(wanted))
  );
}

function publishes({ networks }: InspectNeeds, { id }: Container, wanted: string): boolean {
  const [port, protocol = 'tcp'] = wanted.split('/');
  const ports = portsOf(networks.endpointsOf(id));
  return ports.some((one) => one.hostPort === Number(port) && one.protocol === protocol);
}

/** Which containers mount a volume, for the volumes domain. */
export function volumeUsers(containers: ContainerStore, volume: string): string[] {
  return containers
    .all()
    .filter(({ mounts }) => mounts.some(({ type, name }) => type === 'volume' && name === volume))
    .map(({ id }) => id);
}
