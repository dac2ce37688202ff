import { isDeepStrictEqual } from 'node:util';

export type Difference = Readonly<{ place: string; ours: unknown; theirs: unknown }>;

/** Fields of an inspect about the moment and the machine, not about the container. */
const PASSING = new Set([
  ...['Id', 'Created', 'StartedAt', 'FinishedAt', 'Pid', 'ResolvConfPath', 'HostnamePath', 'HostsPath', 'LogPath'],
  ...['GraphDriver', 'SandboxID', 'SandboxKey', 'EndpointID', 'NetworkID', 'MacAddress', 'AppArmorProfile', 'Image'],
  'Runtime', // crun where it runs
]);

/** Lists that come of maps, which have no order in Go, neither in dockerd nor in its client. */
const UNORDERED = new Set(['Mounts', 'Env', 'Binds', 'Ulimits']);

/** The differences of two values, with their places. */
export function differences(ours: unknown, theirs: unknown): Difference[] {
  return [...compared([], ours, theirs)];
}

/** Whether a place in the outcome of a row is a chosen one, or below it. */
export function isAt(place: string, chosen: string): boolean {
  return [chosen, `inspect.${chosen}`].some((start) => place === start || place.startsWith(`${start}.`));
}

function* compared(path: readonly string[], ours: unknown, theirs: unknown): Generator<Difference> {
  if (isObject(ours) && isObject(theirs)) {
    for (const key of new Set([...Object.keys(ours), ...Object.keys(theirs)])) {
      if (!PASSING.has(key)) yield* compared([...path, key], ours[key], theirs[key]);
    }
    return;
  }
  const isUnordered = UNORDERED.has(path.at(-1) ?? '');
  if (isUnordered ? isSameSet(ours, theirs) : isDeepStrictEqual(ours, theirs)) return;
  yield { place: path.join('.'), ours, theirs };
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isSameSet(ours: unknown, theirs: unknown): boolean {
  if (!Array.isArray(ours) || !Array.isArray(theirs)) return isDeepStrictEqual(ours, theirs);
  return isDeepStrictEqual(new Set<unknown>(ours), new Set<unknown>(theirs));
}
