import { closeSync, mkdirSync, readdirSync, rmdirSync, statSync, unlinkSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';

import type { Engine } from '../../../engine.ts';
import { holdInRoot, openRoot } from '../../../host/files/openat.ts';
import { EngineError, hasCode } from '../../../lib/errors.ts';
import type { ShimPlace } from '../../../runtime/shim/shim-options.ts';
import type { Container, MountPoint } from '../../store.ts';
import { containerFolder } from '../places.ts';

type Needs = Pick<Engine, 'config' | 'layers' | 'volumes'>;

/** The mounts of a run, with their sources for the runtime, and the mounts that the shim makes for them before. */
export type Placed = Readonly<{ mounts: MountPoint[]; places: ShimPlace[] }>;

/**
 * Parts of volumes, and images: the shim mounts them in its own namespace, below the container's folder. The data root is
 * private, so they are not visible on the host.
 */
export function placedMounts(
  { config, layers, volumes }: Needs,
  { id, mounts, idMap, ofBuild }: Pick<Container, 'id' | 'mounts' | 'idMap' | 'ofBuild'>,
): Placed {
  const folder = join(containerFolder(config, id), 'mounts');
  const places: ShimPlace[] = [];
  const placed = mounts.map((mount, index): MountPoint => {
    const isOfStep = idMap !== undefined && ofBuild === true && isOfEngine(config, mount);
    const { type, source, subpath, imageId } = isOfStep ? inFolder(mount) : mount;
    const isMapped = isOfStep || (idMap !== undefined && hasContainerOwners(volumes, mount));
    if (type !== 'image' && subpath === undefined && !isMapped) return mount;
    if (places.length === 0) makeEmpty(folder);
    const target = join(folder, `${index}`);
    if (imageId === undefined) {
      closeSync(holdSource({ source, subpath })); // for an error with its reason; the shim finds it once more
      places.push({ source, subpath, target, isMapped });
    } else {
      const whole = makeFolder(join(folder, `${index}-image`));
      // An overlay without a writable layer has two lower folders at least.
      const empty = makeFolder(join(folder, `${index}-empty`));
      places.push({ source: whole, imageLayers: [...layers.imageFolders(imageId), empty], subpath, target });
    }
    return { ...mount, source: target };
  });
  return { mounts: placed, places };
}

/** File systems of a volume's own, whose owners are ids of containers. */
const OWN_FILESYSTEMS = new Set(['tmpfs', 'ext2', 'ext3', 'ext4', 'xfs', 'btrfs']);

/**
 * Whether the owners of a mount's files are ids of containers, as in layers: those of volumes that the engine makes. The
 * host's folders keep the host's owners, whichever way they come in, as do servers' files: its root is not theirs.
 */
function hasContainerOwners(volumes: Engine['volumes'], { type, name, driver }: MountPoint): boolean {
  if (type !== 'volume' || driver !== 'local') return false;
  const { device = '', type: kind = '' } = (name === undefined ? undefined : volumes.get(name))?.options ?? {};
  return device === '' || OWN_FILESYSTEMS.has(kind);
}

/** Whether a step of a build gets it from the data root: a cache, a part of the context, a script. Clients name no binds of steps. */
function isOfEngine({ dataRoot }: Pick<Engine['config'], 'dataRoot'>, { type, source }: MountPoint): boolean {
  return type === 'bind' && source.startsWith(`${dataRoot}/`);
}

/** A file as a part of its folder. */
function inFolder(mount: MountPoint): MountPoint {
  if (statSync(mount.source).isDirectory()) return mount;
  return { ...mount, source: dirname(mount.source), subpath: basename(mount.source) };
}

/** The mounts, with the paths by which this daemon sees those of the shim. */
export function seenThroughShim({ mounts, places }: Placed, shimPid: number): (MountPoint & { visibleAt?: string })[] {
  const targets = new Set(places.map(({ target }) => target));
  return mounts.map((mount) =>
    targets.has(mount.source) ? { ...mount, visibleAt: `/proc/${shimPid}/root${mount.source}` } : mount,
  );
}

type Source = Readonly<{ source: string; subpath?: string | undefined }>;

/**
 * Holds a mount's files open: the volume, or its part as a process would find it whose root is the volume. Throws
 * `notFound` for a missing part.
 */
export function holdSource({ source, subpath = '.' }: Source): number {
  const root = openRoot(source);
  try {
    return holdInRoot(root, Buffer.from(subpath).toString('latin1'));
  } catch (error) {
    const reason = REASONS.find(([code]) => hasCode(error, code));
    if (reason === undefined) throw error;
    const [code, what] = reason;
    const path = join(source, subpath);
    throw new EngineError(code === 'ENOENT' ? 'notFound' : 'invalid', `cannot access path ${path}: ${what}`, {
      cause: error,
    });
  } finally {
    closeSync(root);
  }
}

const REASONS = [
  ['ENOENT', 'no such file or directory'],
  ['ENOTDIR', 'not a directory'],
  ['ELOOP', 'too many links'],
] as const;

function makeFolder(path: string): string {
  mkdirSync(path, { mode: 0o700 });
  return path;
}

/** Places of the last run are empty on the host: its mounts went with its shim. */
function makeEmpty(folder: string): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) rmdirSync(path);
    else unlinkSync(path);
  }
}
