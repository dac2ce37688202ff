import { closeSync, openSync, readSync, writeFileSync } from 'node:fs';
import { release } from 'node:os';

import { EngineError } from '../../lib/errors.ts';
import { newNetns, withNetns } from '../namespaces.ts';
import { connectedSockets, reapWhenEnded, spawnInSession } from '../spawn.ts';
import { mappedRoot, mapText, type IdMap } from './id-map.ts';

/** Overlays on layers with mapped owners came with it. */
const [LEAST_MAJOR, LEAST_MINOR] = [5, 19];
const CONTROL_FD = 4;

/** `program`: that of the shim. */
type Mapping = Readonly<{ map: IdMap; program: string }>;

let mapping: Mapping | undefined;

/**
 * Gives network namespaces of containers that are made from now on an owner: a user namespace with this map. Throws
 * `failed` where the kernel cannot map the owners of layers.
 */
export function mapContainers(next: Mapping | undefined): void {
  if (next !== undefined) refuseOldKernel(release());
  mapping = next;
}

/** Throws `failed`. */
export function refuseOldKernel(version: string): void {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  if (major > LEAST_MAJOR || (major === LEAST_MAJOR && minor >= LEAST_MINOR)) return;
  throw new EngineError('failed', `--userns-remap needs Linux 5.19, for owners of layers; this is ${version}`);
}

/**
 * Like `newNetns`, for a container: where containers have a map, a user namespace of its own comes with it, or that of the
 * process `usersOf` owns it.
 */
export function newContainerNetns(prepare: () => void, usersOf?: number): number {
  if (mapping === undefined) return newNetns(prepare);
  const netns = newMappedNetns(mapping, usersOf);
  try {
    withNetns(netns, () => prepare());
    return netns;
  } catch (error) {
    closeSync(netns);
    throw error;
  }
}

/**
 * A network namespace in a new user namespace. A process has to make it: the kernel lets none with threads, such as this
 * one, into another user namespace. It takes a millisecond, in which this thread waits.
 */
function newMappedNetns({ map, program }: Mapping, usersOf: number | undefined): number {
  const { uid, gid } = mappedRoot(map);
  const [ours, theirs] = connectedSockets();
  try {
    const words = usersOf === undefined ? [`${uid}`, `${gid}`] : [`${usersOf}`];
    const pid = spawnInSession(program, ['--make-namespaces', ...words], {}, new Map([[CONTROL_FD, theirs]]));
    closeSync(theirs);
    try {
      if (readSync(ours, Buffer.alloc(1)) !== 1) {
        throw new EngineError('failed', 'the kernel makes no user namespace: see the sysctl user.max_user_namespaces');
      }
      if (usersOf === undefined) {
        writeFileSync(`/proc/${pid}/uid_map`, mapText(map.uids));
        writeFileSync(`/proc/${pid}/gid_map`, mapText(map.gids));
      }
      return openSync(`/proc/${pid}/ns/net`, 'r');
    } finally {
      reapWhenEnded(pid);
    }
  } finally {
    closeSync(ours);
  }
}
