import { existsSync } from 'node:fs';
import { posix } from 'node:path';

import { EngineError, refuseIf } from '../../../lib/errors.ts';
import type { MountPoint } from '../../store.ts';
import type { MountSpec } from '../host-config/host-config-schema.ts';

const PROPAGATIONS = ['private', 'rprivate', 'shared', 'rshared', 'slave', 'rslave'];

/**
 * Reads `source:destination[:modes]` or `destination`; a source without a slash names a volume. `dataRoot` is the daemon's.
 * Throws `invalid`.
 */
export function parseBind(bind: string, dataRoot: string): MountPoint {
  const parts = bind.split(':');
  const [first = '', second, modes = ''] = parts;
  if (parts.length > 3 || first === '' || second === '') throw invalid(bind);
  if (second === undefined) return volumeMount('', destinationOf(first, bind, 'volume'), '', true);
  const options = parseModes(modes, ['nocopy'], PROPAGATIONS);
  const writable = !options.includes('ro');
  const propagation = options.find((option) => PROPAGATIONS.includes(option));
  const isCopied = !options.includes('nocopy');
  const refuseField = (type: MountPoint['type'], field: string): never => {
    throw invalid(bind, mountError(type, `field ${field} must not be specified`));
  };
  if (first.startsWith('/')) {
    if (!isCopied) refuseField('bind', 'VolumeOptions');
    return { ...bindMount(first, destinationOf(second, bind, 'bind'), writable, propagation, dataRoot), mode: modes };
  }
  if (propagation !== undefined) refuseField('volume', 'BindOptions');
  const mode = modes === '' ? 'z' : modes;
  return { ...volumeMount(first, destinationOf(second, bind, 'volume'), mode, writable), copyUp: isCopied };
}

const ACCESS = ['ro', 'rw'];
const LABELS = ['z', 'Z'];
const CONSISTENCIES = ['cached', 'delegated', 'consistent'];

/** Reads modes with commas between them, at most one of each kind. Throws `invalid`. */
export function parseModes(modes: string, ...further: readonly (readonly string[])[]): string[] {
  const options = modes === '' ? [] : modes.split(',');
  const kinds = [ACCESS, LABELS, CONSISTENCIES, ...further];
  const kindOf = (option: string): number => kinds.findIndex((kind) => kind.includes(option));
  const given = options.map(kindOf);
  refuseIf(given.includes(-1) || new Set(given).size < given.length, `invalid mode: ${modes}`);
  return options;
}

/** An entry of `Mounts`. Throws `invalid`, also for a missing folder of a bind, which is not created, as in docker. */
export function parseMount(spec: MountSpec, dataRoot: string): MountPoint {
  const { Type = '', Target = '' } = spec;
  const type = readType(Type);
  const check = (wrong: boolean, what: string): void => refuseIf(wrong, mountError(Type, what));
  check(Target === '', 'field Target must not be empty');
  const destination = checkedDestination(Target, (what) => mountError(Type, what));
  check(type !== 'bind' && spec.BindOptions !== undefined, 'field BindOptions must not be specified');
  check(type !== 'volume' && spec.VolumeOptions !== undefined, 'field VolumeOptions must not be specified');
  check(type !== 'image' && spec.ImageOptions !== undefined, 'field ImageOptions must not be specified');
  check(type !== 'tmpfs' && spec.TmpfsOptions !== undefined, 'field TmpfsOptions must not be specified');
  const { Source = '', ReadOnly = false } = spec;
  switch (type) {
    case 'bind': {
      const { Propagation = '', NonRecursive = false, CreateMountpoint = false } = spec.BindOptions ?? {};
      checkReadOnly(spec);
      check(Source === '', 'field Source must not be empty');
      check(Propagation !== '' && !PROPAGATIONS.includes(Propagation), `invalid propagation mode: ${Propagation}`);
      check(!Source.startsWith('/'), `invalid mount path: '${Source}' mount path must be absolute`);
      check(!CreateMountpoint && !existsSync(Source), `bind source path does not exist: ${Source}`);
      const mount = bindMount(Source, destination, !ReadOnly, Propagation || undefined, dataRoot);
      const isFlat = spec.BindOptions?.ReadOnlyNonRecursive === true;
      return {
        ...mount,
        mustExist: !CreateMountpoint,
        ...(NonRecursive && { recursive: false }),
        ...(isFlat && { readOnlyBelow: false }),
      };
    }
    case 'volume':
      check(Source === '' && ReadOnly, 'must not set ReadOnly mode when using anonymous volumes');
      check(
        Source === '' && (spec.VolumeOptions?.Subpath ?? '') !== '',
        'must not set Subpath when using anonymous volumes',
      );
      return {
        ...volumeMount(Source, destination, 'z', !ReadOnly),
        copyUp: spec.VolumeOptions?.NoCopy !== true,
        ...subpathOf(Type, spec.VolumeOptions?.Subpath),
      };
    case 'image':
      check(Source === '', 'field Source must not be empty');
      return { ...imageMount(Source, destination), ...subpathOf(Type, spec.ImageOptions?.Subpath) };
    case 'tmpfs':
      check(Source !== '', 'field Source must not be specified');
      check((spec.TmpfsOptions?.SizeBytes ?? 0) < 0, 'the size of a tmpfs must not be negative');
      for (const words of spec.TmpfsOptions?.Options ?? []) {
        check(words.length !== 1 && words.length !== 2, 'invalid option array length');
        check(words.length === 2 || !TMPFS_OPTIONS.has(words[0]), `invalid option: ${words[0]}`);
      }
      return tmpfsMount(destination, !ReadOnly, tmpfsText(spec));
  }
}

/** A volume at a path of the container; an empty name stands for a new one. */
export function volumeMount(name: string, destination: string, mode: string, writable: boolean): MountPoint {
  return {
    type: 'volume',
    name,
    source: '',
    destination: posix.normalize(destination),
    mode,
    writable,
    propagation: '',
    copyUp: true,
    anonymous: name === '',
  };
}

function bindMount(
  source: string,
  destination: string,
  writable: boolean,
  propagation: string | undefined,
  dataRoot: string,
): MountPoint {
  const path = posix.normalize(source);
  const touchesData = contains(path, dataRoot) || contains(dataRoot, path);
  if (touchesData && propagation !== undefined && !['rslave', 'rshared'].includes(propagation)) {
    const wanted = 'must use either propagation mode "rslave" or "rshared" when mount source is within the daemon root';
    const facts = `daemon root: "${dataRoot}", bind mount source: "${path}", propagation: "${propagation}"`;
    throw new EngineError('invalid', `invalid mount config: ${wanted}, ${facts}`);
  }
  return {
    type: 'bind',
    source: path,
    destination,
    mode: '',
    writable,
    // A private copy of the engine's mounts would keep them from being unmounted.
    propagation: propagation ?? (touchesData ? 'rslave' : 'rprivate'),
    ...(touchesData && propagation === undefined && { isSlaveByDefault: true }),
    copyUp: false,
    anonymous: false,
  };
}

/** How far read-only goes below a bind. Throws `invalid` for contradictions, in dockerd's words. */
function checkReadOnly({ ReadOnly = false, BindOptions }: MountSpec): void {
  const { ReadOnlyNonRecursive: isFlat = false, ReadOnlyForceRecursive: isForced = false } = BindOptions ?? {};
  refuseIf(!ReadOnly && isFlat, 'mount options conflict: !ReadOnly && BindOptions.ReadOnlyNonRecursive');
  refuseIf(!ReadOnly && isForced, 'mount options conflict: !ReadOnly && BindOptions.ReadOnlyForceRecursive');
  refuseIf(isFlat && isForced, 'mount options conflict: ReadOnlyNonRecursive && BindOptions.ReadOnlyForceRecursive');
}

function contains(folder: string, path: string): boolean {
  return path === folder || path.startsWith(folder.endsWith('/') ? folder : `${folder}/`);
}

/** Throws `invalid` for a path that is absolute, or climbs out. */
function subpathOf(type: string, written = ''): { subpath?: string } {
  const path = posix.normalize(written);
  const isLocal = !path.startsWith('/') && path !== '..' && !path.startsWith('../') && !path.includes('\0');
  refuseIf(!isLocal, mountError(type, 'subpath must be a relative path within the volume'));
  return written === '' ? {} : { subpath: written };
}

/** An image, read-only. `Source` is shown as its name. */
function imageMount(name: string, destination: string): MountPoint {
  const nothing = { source: '', mode: '', copyUp: false, anonymous: false };
  return { type: 'image', name, destination, writable: false, propagation: 'rprivate', ...nothing };
}

function tmpfsMount(destination: string, writable: boolean, options: string): MountPoint {
  const nothing = { source: '', mode: '', propagation: '', copyUp: false, anonymous: false };
  return { type: 'tmpfs', destination, writable, options, ...nothing };
}

/** A normalized path of the container. `complaint` words the reason of a refusal. */
export function checkedDestination(path: string, complaint = (what: string): string => what): string {
  const normal = posix.normalize(path);
  refuseIf(normal === '/', complaint("invalid specification: destination can't be '/'"));
  refuseIf(!path.startsWith('/'), complaint(`invalid mount path: '${path}' mount path must be absolute`));
  return normal.endsWith('/') ? normal.slice(0, -1) : normal;
}

function destinationOf(path: string, bind: string, type: MountPoint['type']): string {
  return checkedDestination(path, (what) => invalid(bind, mountError(type, what)).message);
}

function readType(type: string): MountPoint['type'] {
  if (type === 'bind' || type === 'volume' || type === 'tmpfs' || type === 'image') return type;
  throw new EngineError('invalid', mountError(type, 'mount type unknown'));
}

function mountError(type: string, what: string): string {
  return `invalid mount config for type "${type}": ${what}`;
}

function invalid(bind: string, why?: string): EngineError {
  return new EngineError('invalid', `invalid volume specification: '${bind}'${why === undefined ? '' : `: ${why}`}`);
}

/** The options that a client can choose beside size and mode. */
const TMPFS_OPTIONS: ReadonlySet<string | undefined> = new Set(['exec', 'noexec']);

/** The options of a tmpfs, in the form of a mount. */
function tmpfsText({ TmpfsOptions, ReadOnly = false }: MountSpec): string {
  const { SizeBytes = 0, Mode = 0, Options } = TmpfsOptions ?? {};
  return [
    ...(Options ?? []).map(([name]) => name),
    ...(ReadOnly ? ['ro'] : []),
    ...(Mode === 0 ? [] : [`mode=${Mode.toString(8)}`]),
    ...(SizeBytes === 0 ? [] : [`size=${SizeBytes}`]),
  ].join(',');
}
