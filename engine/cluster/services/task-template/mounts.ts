import { EngineError, refuseIf } from '../../../lib/errors.ts';
import type { TaskMount } from '../../state/task-template.ts';
import { filled, omitEmpty } from '../omit-empty.ts';
import { refuseArgument } from '../refuse-argument.ts';
import type { MountBody } from './schema.ts';

const PROPAGATIONS = ['rprivate', 'private', 'rslave', 'slave', 'rshared', 'shared'];
const TYPES: ReadonlyMap<string, TaskMount['type']> = new Map([
  ['', 'bind'],
  ['bind', 'bind'],
  ['volume', 'volume'],
  ['tmpfs', 'tmpfs'],
  ['image', 'image'],
]);
/** Types that docker's clients know, and that this engine does not mount for tasks. */
const UNIMPLEMENTED = ['npipe', 'cluster'];

/** The mounts of a container's specification; an empty type stands for bind. */
export function readMounts(bodies: readonly MountBody[]): TaskMount[] {
  return bodies.map(readMount);
}

/** Refuses two mounts with one target. */
export function refuseSharedTargets(mounts: readonly TaskMount[]): void {
  const targets = mounts.map(({ target = '' }) => target);
  const twice = targets.find((target, at) => targets.indexOf(target) !== at);
  refuseArgument(twice !== undefined, `ContainerSpec: duplicate mount point: ${twice}`);
}

function readMount(body: MountBody): TaskMount {
  const { Type = '', BindOptions, VolumeOptions, TmpfsOptions, ImageOptions } = body;
  const type = TYPES.get(Type.toLowerCase());
  if (type === undefined) {
    const word = Type.toLowerCase();
    if (!UNIMPLEMENTED.includes(word)) throw new EngineError('invalid', `invalid MountType: "${Type}"`);
    throw new EngineError('notImplemented', `mounts of the type ${word} are not implemented for services`);
  }
  const propagation = BindOptions?.Propagation;
  refuseIf(
    propagation !== undefined && propagation !== '' && !PROPAGATIONS.includes(propagation),
    `invalid MountPropagation: "${propagation}"`,
  );
  const driver = VolumeOptions?.DriverConfig;
  return {
    type,
    ...omitEmpty({
      source: body.Source,
      target: body.Target,
      readOnly: body.ReadOnly,
      propagation: BindOptions && (propagation || 'rprivate'),
      nonRecursive: BindOptions?.NonRecursive,
      createMountpoint: BindOptions?.CreateMountpoint,
      readOnlyNonRecursive: BindOptions?.ReadOnlyNonRecursive,
      readOnlyForceRecursive: BindOptions?.ReadOnlyForceRecursive,
      volume:
        VolumeOptions &&
        omitEmpty({
          noCopy: VolumeOptions.NoCopy,
          subpath: VolumeOptions.Subpath,
          labels: VolumeOptions.Labels,
          driver: driver && omitEmpty({ name: driver.Name, options: driver.Options }),
        }),
      tmpfs:
        TmpfsOptions &&
        omitEmpty({ sizeBytes: TmpfsOptions.SizeBytes, mode: TmpfsOptions.Mode, options: TmpfsOptions.Options }),
      image: ImageOptions && omitEmpty({ subpath: ImageOptions.Subpath }),
    }),
  };
}

export function presentMount(mount: TaskMount): object {
  const { type, source, target, readOnly, volume, tmpfs, image } = mount;
  const bind = presentBind(mount);
  return {
    Type: type,
    ...omitEmpty({
      Source: source,
      Target: target,
      ReadOnly: readOnly,
      BindOptions: Object.keys(bind).length === 0 ? undefined : bind,
      VolumeOptions: volume && {
        ...omitEmpty({ NoCopy: volume.noCopy, Subpath: volume.subpath }),
        ...filled({ Labels: volume.labels }),
        ...omitEmpty({
          DriverConfig: volume.driver && {
            ...omitEmpty({ Name: volume.driver.name }),
            ...filled({ Options: volume.driver.options }),
          },
        }),
      },
      TmpfsOptions: tmpfs && filled({ SizeBytes: tmpfs.sizeBytes, Mode: tmpfs.mode, Options: tmpfs.options }),
      ImageOptions: image && omitEmpty({ Subpath: image.subpath }),
    }),
  };
}

/** The options of a bind mount, without missing and false ones. */
export function presentBind(mount: TaskMount): object {
  return omitEmpty({
    Propagation: mount.propagation,
    NonRecursive: mount.nonRecursive,
    CreateMountpoint: mount.createMountpoint,
    ReadOnlyNonRecursive: mount.readOnlyNonRecursive,
    ReadOnlyForceRecursive: mount.readOnlyForceRecursive,
  });
}
