import { isUtf8 } from 'node:buffer';

import type { BytePath } from '../../host/files/openat.ts';
import { filesystemOf } from '../../host/files/statfs.ts';
import { EngineError } from '../../lib/errors.ts';
import { MountedTree } from './mounted-tree.ts';
import type { OciMount } from './mounts.ts';

/** Files of /proc that may be replaced, as by lxcfs; runc takes the same ones. */
const REPLACEABLE = new Set(
  [
    ...['cpuinfo', 'diskstats', 'loadavg', 'meminfo', 'net/dev', 'slabinfo', 'stat', 'swaps', 'uptime'],
    'sys/kernel/ns_last_pid',
  ].map((name) => `/proc/${name}`),
);
/** The runtimes look for these by name, so they must be no links. */
const FIXED = new Set(['/proc', '/sys', '/dev']);
/** Each round may move a mount by a link of one that the round before has moved; as many as links in a path. */
const MAX_ROUNDS = 40;

type Placed = Readonly<{ mount: OciMount; parts: readonly BytePath[] }>;

/** The mounts of a container at their places; `resolve` resolves a further path in all of them. */
export type Places = Disposable & Readonly<{ mounts: OciMount[]; resolve: (path: string) => string }>;

/**
 * Resolves all destinations inside the root and puts outer mounts first, so that no runtime has to follow a link: they
 * differ in it, and crun would follow one into /proc. Throws `failed` for a mount at or below /proc.
 */
export function placeMounts(root: string, mounts: readonly OciMount[]): Places {
  let order = inOrder(mounts.map((mount) => ({ mount, parts: partsOf(mount.destination) })));
  for (let round = 0; round < MAX_ROUNDS; round++) {
    using held = new DisposableStack();
    const tree = held.use(new MountedTree(root));
    const resolved = order.map((placed) => ({ ...placed, parts: tree.add(placed) }));
    const next = inOrder(resolved);
    // Each place has to hold with the mounts that come before it now.
    if (next.every((placed, at) => isSame(placed, order[at]!))) {
      for (const placed of next) refuseForbidden(placed);
      const parts = held.move();
      return {
        mounts: next.map(({ mount: { visibleAt: _ours, ...mount }, parts: place }) => ({
          ...mount,
          destination: pathOf(place),
        })),
        resolve: (path) => pathOf(tree.resolve(partsOf(path))),
        [Symbol.dispose]: () => parts.dispose(),
      };
    }
    order = next;
  }
  throw new EngineError('failed', 'the mounts of the container are on too many links of each other');
}

/** An outer mount must not cover an inner one. */
function inOrder(placed: readonly Placed[]): Placed[] {
  return placed.toSorted((a, b) => a.parts.length - b.parts.length);
}

function isSame(a: Placed, b: Placed): boolean {
  return a.mount === b.mount && pathOf(a.parts) === pathOf(b.parts);
}

function refuseForbidden({ mount, parts }: Placed): void {
  const place = pathOf(parts);
  const asked = mount.destination;
  if (FIXED.has(asked) && place !== asked) {
    throw new EngineError('failed', `the image has a link at ${asked}, where a folder has to be`);
  }
  if (mount.type === 'proc' || parts[0] !== 'proc' || REPLACEABLE.has(place)) return;
  const told = place === asked ? asked : `${asked}, which leads to ${place},`;
  if (place !== '/proc') throw new EngineError('failed', `${told} cannot be mounted because it is inside /proc`);
  const isProc = mount.type === 'bind' && filesystemOf(mount.visibleAt ?? mount.source).kind === 'proc';
  if (!isProc) throw new EngineError('failed', `${told} cannot be mounted because the source is not of type proc`);
}

function partsOf(destination: string): BytePath[] {
  return Buffer.from(destination)
    .toString('latin1')
    .split('/')
    .filter((part) => part !== '');
}

/** As text: `config.json` cannot name others. */
function pathOf(parts: readonly BytePath[]): string {
  const bytes = Buffer.from(`/${parts.join('/')}`, 'latin1');
  if (!isUtf8(bytes)) throw new EngineError('failed', `a link leads to ${bytes.toString()}, which is not UTF-8`);
  return bytes.toString();
}
