import { EngineError, refuseIf } from '../../../lib/errors.ts';
import type { TaskMount } from '../../state/records.ts';
import { filled, omitEmpty } from '../omit-empty.ts';
import { refuseArgument } from '../refuse-argument.ts';
import type { MountBody } from './schema.ts';

const PROPAGATIONS = ['rprivate', 'private', 'rslave', 'slave', 'rshared', 'shared'];
const TYPES: ReadonlyMap<string, TaskMount['type']> = new Map([
  ['', 'bind'],
  ['bind', 'bind'],
  ['volume', 'volume'],
  ['tmpfs', 'tmpfs'],
]);
/** Types that docker's clients know, and that this engine does not mount for tasks. */
const UNIMPLEMENTED = ['npipe', 'cluster', 'image'];

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
  const { Type = '', BindOptions, VolumeOptions, TmpfsOptions } = body;
  const type = TYPES.get(Type.toLowerCase());
  if (type === undefined) {
    const word = Type.toLowerCase();
    if (!UNIMPLEMENTED.includes(word)) throw new EngineError('invalid', `invalid MountType: "${Type}"`);
    throw new EngineError('notImplemented', `mounts of the type ${word} are not implemented for services`);
  }
  refuseLaterOptions(body);
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
      volume:
        VolumeOptions &&
        omitEmpty({
          noCopy: VolumeOptions.NoCopy,
          labels: VolumeOptions.Labels,
          driver: driver && omitEmpty({ name: driver.Name, options: driver.Options }),
        }),
      tmpfs: TmpfsOptions && omitEmpty({ sizeBytes: TmpfsOptions.SizeBytes, mode: TmpfsOptions.Mode }),
    }),
  };
}

/** Refuses, by their names, options without which the mount would not be the one that the client wants. */
function refuseLaterOptions({ BindOptions, VolumeOptions }: MountBody): void {
  const later = {
    'BindOptions.CreateMountpoint': BindOptions?.CreateMountpoint,
    'BindOptions.ReadOnlyNonRecursive': BindOptions?.ReadOnlyNonRecursive,
    'BindOptions.ReadOnlyForceRecursive': BindOptions?.ReadOnlyForceRecursive,
    'VolumeOptions.Subpath': VolumeOptions?.Subpath,
  };
  const [name] = Object.keys(omitEmpty(later));
  if (name !== undefined) throw new EngineError('notImplemented', `${name} is not implemented for mounts of services`);
}

export function presentMount(mount: TaskMount): object {
  const { type, source, target, readOnly, propagation, nonRecursive, volume, tmpfs } = mount;
  const hasBindOptions = propagation !== undefined || nonRecursive === true;
  return {
    Type: type,
    ...omitEmpty({
      Source: source,
      Target: target,
      ReadOnly: readOnly,
      BindOptions: hasBindOptions ? omitEmpty({ Propagation: propagation, NonRecursive: nonRecursive }) : undefined,
      VolumeOptions: volume && {
        ...omitEmpty({ NoCopy: volume.noCopy }),
        ...filled({ Labels: volume.labels }),
        ...omitEmpty({
          DriverConfig: volume.driver && {
            ...omitEmpty({ Name: volume.driver.name }),
            ...filled({ Options: volume.driver.options }),
          },
        }),
      },
      TmpfsOptions: tmpfs && filled({ SizeBytes: tmpfs.sizeBytes, Mode: tmpfs.mode }),
    }),
  };
}
