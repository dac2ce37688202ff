import { dirname } from 'node:path';

import { overlayFolders } from '../../host/mounts/mount.ts';
import { append } from '../../lib/append.ts';

/** The overlay that the shim mounts. Lower folders may be relative to `base`, topmost first. */
export type RootFs = Readonly<{ base: string; lower: readonly string[]; upper: string; work: string; target: string }>;

/** A mount that the shim makes before the runtime starts: `subpath` of `source`, found at `target`. */
export type ShimPlace = Readonly<{
  /** A folder; that of an image is empty, and gets the image's layers. */
  source: string;
  /** Topmost first, as those of the root. */
  imageLayers?: readonly string[] | undefined;
  subpath?: string | undefined;
  /** Its owners are ids of the container, and the container has a map. */
  isMapped?: boolean;
  target: string;
}>;

/** The map of a container with a user namespace of its own. */
export type ShimMap = Readonly<{
  /** Root of the container, on the host. */
  root: Readonly<{ uid: number; gid: number }>;
  /** A process whose user namespace is shared. Default: that of the network namespace. */
  ofPid?: number | undefined;
}>;

/** The log file for the output. Without `maxBytes`, or with 0, the file is never rotated. */
export type ShimLog = Readonly<{
  path: string;
  maxBytes?: number;
  maxFiles?: number;
  /** Rotated files are compressed, as `.1.gz` and so on. */
  compress?: boolean;
  /** JSON of the labels and variables that the log's options select, written into every line. Up to 100 KB. */
  attributes?: string;
  /** Lines are numbered (`"seq":1`) from here on, or from the number after the last one of the file. */
  firstNumber?: number;
}>;

export type ShimOptions = Readonly<{
  /** Id of the container, or of the exec. */
  id: string;
  /** Made by the caller. config.json (or process.json of an exec) has to be there before `start`. */
  directory: string;
  runtime: Readonly<{ path: string; root: string; hidden?: string }>;
  mode:
    | Readonly<{
        kind: 'container';
        rootfs?: RootFs;
        /** A descriptor; `/proc/<pid>/fd/3` in the shim. */
        netns?: number;
        places?: readonly ShimPlace[];
        /** The /dev/shm of a running process, to be mounted at `target` in the shim's namespace. */
        memory?: Readonly<{ ofPid: number; target: string }>;
        /** A folder on which the shim mounts an empty memory file system, in its own namespace. */
        filesTarget?: string;
      }>
    | Readonly<{ kind: 'exec'; container: string; oomScoreAdj?: number }>;
  /** The container has a user namespace: `/proc/<pid>/fd/5` in its shim. */
  map?: ShimMap | undefined;
  tty: boolean;
  openStdin: boolean;
  stdinOnce: boolean;
  /** Without it the output is not logged. */
  log?: ShimLog;
  /** Inside the hierarchies, such as `/docker/<id>`: watched for out-of-memory kills. */
  cgroupPath?: string;
  /** The runtime asks systemd for the cgroup. */
  cgroupBySystemd?: boolean;
  /** A runtime that takes longer to start or to remove a container is killed. Default: 60. */
  runtimeSeconds?: number;
}>;

/** The command line of gantry-shim. */
export function shimArguments(options: ShimOptions): string[] {
  const { mode, log, runtime } = options;
  const list = ['--id', options.id, '--directory', options.directory];
  list.push('--runtime', runtime.path, '--runtime-root', runtime.root);
  if (runtime.hidden !== undefined) list.push('--runtime-hide', runtime.hidden);
  if (mode.kind === 'exec') list.push('--exec', mode.container);
  if (mode.kind === 'exec' && mode.oomScoreAdj !== undefined) list.push('--exec-oom-score', String(mode.oomScoreAdj));
  if (mode.kind === 'container' && mode.rootfs !== undefined) append(list, rootFsArguments(mode.rootfs));
  if (options.map !== undefined) append(list, mapArguments(options.map, mode));
  if (mode.kind === 'container') append(list, (mode.places ?? []).flatMap(placeArguments));
  if (mode.kind === 'container' && mode.memory !== undefined) {
    list.push('--memory-of', String(mode.memory.ofPid), '--memory-target', mode.memory.target);
  }
  if (mode.kind === 'container' && mode.filesTarget !== undefined) list.push('--files-target', mode.filesTarget);
  if (mode.kind === 'container' && mode.netns !== undefined) list.push('--netns');
  if (options.tty) list.push('--tty');
  if (options.openStdin) list.push('--stdin');
  if (options.stdinOnce) list.push('--stdin-once');
  if (log !== undefined) append(list, logArguments(log));
  if (options.cgroupBySystemd === true) list.push('--systemd-cgroup');
  if (options.cgroupPath !== undefined) list.push('--cgroup', options.cgroupPath);
  if (options.runtimeSeconds !== undefined) list.push('--runtime-seconds', String(options.runtimeSeconds));
  return list;
}

function rootFsArguments({ base, lower, upper, work, target }: RootFs): string[] {
  const options = overlayFolders({ lower, upper, work });
  return ['--rootfs-base', base, '--rootfs-options', options, '--rootfs-target', target];
}

function mapArguments({ root, ofPid }: ShimMap, mode: ShimOptions['mode']): string[] {
  const list = ['--mapped-root', `${root.uid}:${root.gid}`];
  if (mode.kind === 'exec') return list;
  if (ofPid !== undefined) list.push('--userns-of', String(ofPid));
  if (mode.rootfs !== undefined) list.push('--mapped', mode.rootfs.base, '--mapped', dirname(mode.rootfs.upper));
  return list;
}

function placeArguments({ source, imageLayers, subpath, target, isMapped = false }: ShimPlace): string[] {
  return [
    ...['--place-source', source],
    ...(imageLayers === undefined ? [] : ['--place-overlay', overlayFolders({ lower: imageLayers })]),
    ...(subpath === undefined ? [] : ['--place-subpath', subpath]),
    ...['--place-target', target],
    ...(isMapped ? ['--place-mapped'] : []),
  ];
}

function logArguments(log: ShimLog): string[] {
  const list = ['--log', log.path];
  if (log.maxBytes !== undefined) list.push('--log-max-size', String(log.maxBytes));
  if (log.maxFiles !== undefined) list.push('--log-max-files', String(log.maxFiles));
  if (log.compress === true) list.push('--log-compress');
  if (log.firstNumber !== undefined) list.push('--log-number', String(log.firstNumber));
  if (log.attributes) list.push('--log-attributes', log.attributes);
  return list;
}
