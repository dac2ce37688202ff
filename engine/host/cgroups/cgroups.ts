import { existsSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { hasCode } from '../../lib/errors.ts';
import { isRootless } from '../rootless.ts';

/** The mount points of the cgroup hierarchies; version 2 has one. */
export const CGROUP_ROOT = '/sys/fs/cgroup';

export type Controller = 'cpu' | 'cpuacct' | 'cpuset' | 'memory' | 'pids' | 'blkio' | 'devices' | 'freezer' | 'hugetlb';

/** `hybrid` is version 1 with an additional, controllerless version 2 mount; limits are then version 1's. */
export type Cgroups = Readonly<{
  version: 1 | 2;
  hybrid: boolean;
  /** Mount point of each controller that can be used. In version 2 they are all the same. */
  controllers: ReadonlyMap<Controller, string>;
  /** Mount points of all hierarchies, those without a controller included. */
  mounts: readonly string[];
}>;

const CONTROLLERS: readonly Controller[] = [
  'cpu',
  'cpuacct',
  'cpuset',
  'memory',
  'pids',
  'blkio',
  'devices',
  'freezer',
  'hugetlb',
];

/** A user's daemon has none, as nobody has delegated any: its containers have no limits. */
const NO_CGROUPS: Cgroups = { version: 1, hybrid: false, controllers: new Map(), mounts: [] };

let detected: Cgroups | undefined;

/** The cgroups of this machine, read once: they are not mounted anew while the daemon runs. */
export function detectCgroups(): Cgroups {
  return (detected ??= isRootless ? NO_CGROUPS : cgroupsIn(readFileSync('/proc/self/mountinfo', 'utf8')));
}

/** Finds the version of cgroups from the mount table. */
export function cgroupsIn(mountinfo: string): Cgroups {
  const mounts = mountinfo.split('\n').flatMap(readMount);
  const unified = mounts.find(({ type }) => type === 'cgroup2');
  const old = mounts.filter(({ type }) => type === 'cgroup');
  const paths = mounts.filter(({ type }) => type.startsWith('cgroup')).map(({ path }) => path);
  const controllers = new Map<Controller, string>();
  for (const { path, options } of old) {
    for (const name of CONTROLLERS) if (options.includes(name) && !controllers.has(name)) controllers.set(name, path);
  }
  if (controllers.size > 0 || unified === undefined) {
    return { version: 1, hybrid: unified !== undefined, controllers, mounts: paths };
  }
  for (const name of controllersOf(unified.path)) controllers.set(name, unified.path);
  return { version: 2, hybrid: false, controllers, mounts: paths };
}

/** Current values of a container's cgroup; `undefined` where the controller or the group does not exist. */
export type Usage = Readonly<{
  memoryBytes: number | undefined;
  memoryLimitBytes: number | undefined;
  pids: number | undefined;
  pidsLimit: number | undefined;
  cpuNs: number | undefined;
}>;

/** Reads usage and limits of the cgroup `path`, such as `/docker/<id>`. A limit that is not set is `Infinity`. */
export function readUsage({ version, controllers }: Cgroups, path: string): Usage {
  const read = (controller: Controller, file: string): string | undefined => {
    const mount = controllers.get(controller);
    return mount === undefined ? undefined : readValue(join(mount, path, file));
  };
  if (version === 1) {
    return {
      memoryBytes: toNumber(read('memory', 'memory.usage_in_bytes')),
      memoryLimitBytes: toLimit(read('memory', 'memory.limit_in_bytes')),
      pids: toNumber(read('pids', 'pids.current')),
      pidsLimit: toLimit(read('pids', 'pids.max')),
      cpuNs: toNumber(read('cpuacct', 'cpuacct.usage')),
    };
  }
  const cpu = /^usage_usec (\d+)$/m.exec(read('cpu', 'cpu.stat') ?? '')?.[1];
  return {
    memoryBytes: toNumber(read('memory', 'memory.current')),
    memoryLimitBytes: toLimit(read('memory', 'memory.max')),
    pids: toNumber(read('pids', 'pids.current')),
    pidsLimit: toLimit(read('pids', 'pids.max')),
    cpuNs: cpu === undefined ? undefined : Number(cpu) * 1000,
  };
}

/** The ids of the processes in a cgroup and in those below it; none when it is gone. */
export function processesIn({ mounts }: Pick<Cgroups, 'mounts'>, path: string): number[] {
  const pids = new Set<number>();
  for (const mount of mounts) addProcesses(join(mount, path), pids);
  return [...pids];
}

/** Whether any hierarchy has it. */
export function hasCgroup({ mounts }: Pick<Cgroups, 'mounts'>, path: string): boolean {
  return mounts.some((mount) => existsSync(join(mount, path)));
}

function addProcesses(directory: string, pids: Set<number>): void {
  for (const line of (readValue(join(directory, 'cgroup.procs')) ?? '').split('\n')) {
    // 0 stands for a process in a pid namespace that we cannot see; it cannot be signalled.
    if (line !== '' && line !== '0') pids.add(Number(line));
  }
  for (const name of foldersIn(directory)) addProcesses(join(directory, name), pids);
}

/**
 * Freezes or thaws every process of a cgroup, and returns whether there was one to freeze. Synchronous, because the kernel
 * answers at once. A machine without a freezer, or a cgroup that does not exist or disappears meanwhile, is not an error.
 */
export function freezeCgroup({ version, controllers }: Cgroups, path: string, frozen: boolean): boolean {
  const mount = controllers.get('freezer');
  if (mount === undefined) return false;
  try {
    if (version === 1) writeFileSync(join(mount, path, 'freezer.state'), frozen ? 'FROZEN' : 'THAWED', { flag: 'r+' });
    else writeFileSync(join(mount, path, 'cgroup.freeze'), frozen ? '1' : '0', { flag: 'r+' });
    return true;
  } catch (error) {
    if (!hasCode(error, 'ENOENT') && !hasCode(error, 'ENODEV')) throw error;
    return false;
  }
}

/**
 * Removes a cgroup and those below it from every hierarchy. A cgroup that does not exist is not an error. Throws
 * `EBUSY` while processes are in it.
 */
export function removeCgroup({ mounts }: Pick<Cgroups, 'mounts'>, path: string): void {
  // A path such as `/` or `..` would remove the machine's own cgroups.
  if (!/^(\/[^/]+)+$/.test(path) || path.split('/').includes('..'))
    throw new RangeError(`not a cgroup of the engine: ${path}`);
  for (const mount of mounts) removeTree(join(mount, path));
}

function removeTree(directory: string): void {
  for (const name of foldersIn(directory)) removeTree(join(directory, name));
  try {
    rmdirSync(directory);
  } catch (error) {
    if (!hasCode(error, 'ENOENT')) throw error; // not in this hierarchy, or already removed
  }
}

function foldersIn(directory: string): string[] {
  try {
    const entries = readdirSync(directory, { withFileTypes: true });
    return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
  } catch (error) {
    if (hasCode(error, 'ENOENT') || hasCode(error, 'ENODEV')) return [];
    throw error;
  }
}

type Mount = { path: string; type: string; options: string[] };

function readMount(line: string): Mount[] {
  const [own, filesystem] = line.split(' - ');
  const path = own?.split(' ')[4];
  const [type, , options] = filesystem?.split(' ') ?? [];
  if (path === undefined || type === undefined || !path.startsWith(CGROUP_ROOT)) return [];
  return [{ path, type, options: options?.split(',') ?? [] }];
}

function controllersOf(mount: string): Controller[] {
  const listed = new Set(readValue(join(mount, 'cgroup.controllers'))?.split(/\s+/));
  if (listed.has('io')) listed.add('blkio'); // the name of the same in version 2
  return CONTROLLERS.filter((name) => listed.has(name) || name === 'devices' || name === 'freezer');
}

/** A file's text without the blanks around it; undefined when file or group is gone. */
export function readValue(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch (error) {
    if (hasCode(error, 'ENOENT') || hasCode(error, 'ENODEV')) return undefined;
    throw error;
  }
}

function toNumber(value: string | undefined): number | undefined {
  return value === undefined ? undefined : Number(value);
}

/** Version 1 has no word for "none": it answers with the largest number of pages. */
const NO_LIMIT = 2 ** 62;

function toLimit(value: string | undefined): number | undefined {
  if (value === undefined) return undefined;
  return value === 'max' || Number(value) >= NO_LIMIT ? Infinity : Number(value);
}
