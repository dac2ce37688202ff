import { parseReference } from '../../images/names/reference.ts';
import { EngineError, refuseIf } from '../../lib/errors.ts';
import { parseConstraint } from '../scheduler/constraint.ts';
import { readReferences } from '../secrets/references.ts';
import type { Resources, TaskMount, TaskTemplate } from '../state/records.ts';
import { omitEmpty } from './omit-empty.ts';
import { refuseArgument } from './refuse-argument.ts';
import type { TaskTemplateBody } from './schema.ts';

const LEAST_NANO_CPUS = 1e6;
const LEAST_MEMORY = 4 * 1024 * 1024;
const PROPAGATIONS = ['rprivate', 'private', 'rslave', 'slave', 'rshared', 'shared'];

type Container = NonNullable<TaskTemplateBody['ContainerSpec']>;
type Mount = NonNullable<Container['Mounts']>[number];
type Amounts = NonNullable<NonNullable<TaskTemplateBody['Resources']>['Limits']>;

/** The task template of a service, checked; refusals have dockerd's words. */
export function readTaskTemplate(body: TaskTemplateBody): TaskTemplate {
  const { ContainerSpec, LogDriver, Resources: resources, RestartPolicy, Placement, ForceUpdate = 0 } = body;
  if (ContainerSpec === undefined || ContainerSpec === null) {
    throw new EngineError('invalid', 'mismatched Runtime and *Spec fields');
  }
  // In the order in which dockerd checks.
  const mounts = ContainerSpec.Mounts?.map(readMount);
  const restart = RestartPolicy ? readRestart(RestartPolicy) : undefined;
  const limits = resources?.Limits ? readAmounts(resources.Limits) : undefined;
  const reservations = resources?.Reservations ? readAmounts(resources.Reservations) : undefined;
  refuseArgument((restart?.delayNs ?? 0) < 0, 'TaskSpec: restart-delay cannot be negative');
  refuseArgument((restart?.windowNs ?? 0) < 0, 'TaskSpec: restart-window cannot be negative');
  for (const constraint of Placement?.Constraints ?? []) checkConstraint(constraint);
  checkImage(ContainerSpec.Image ?? '');
  const references = readReferences(ContainerSpec);
  const targets = (mounts ?? []).map(({ target = '' }) => target);
  const twice = targets.find((target, at) => targets.indexOf(target) !== at);
  refuseArgument(twice !== undefined, `ContainerSpec: duplicate mount point: ${twice}`);
  return {
    container: {
      image: ContainerSpec.Image!,
      ...omitEmpty({
        labels: ContainerSpec.Labels,
        command: ContainerSpec.Command,
        args: ContainerSpec.Args,
        env: ContainerSpec.Env,
        dir: ContainerSpec.Dir,
        user: ContainerSpec.User,
        mounts,
        stopGracePeriodNs: ContainerSpec.StopGracePeriod,
      }),
      ...references,
    },
    ...omitEmpty({
      logDriver: LogDriver && { name: LogDriver.Name ?? '', options: LogDriver.Options ?? {} },
      resources: resources && omitEmpty({ limits, reservations }),
      restart,
      constraints: Placement && (Placement.Constraints ?? []),
    }),
    ...(ForceUpdate === 0 ? {} : { forceUpdate: ForceUpdate }),
  };
}

function checkImage(image: string): void {
  refuseArgument(image === '', 'ContainerSpec: image reference must be provided');
  try {
    parseReference(image);
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    refuseArgument(true, `ContainerSpec: "${image}" is not a valid repository/tag`);
  }
}

/** dockerd answers these with a 500. */
function checkConstraint(text: string): void {
  try {
    parseConstraint(text);
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    throw new EngineError('failed', `rpc error: code = Unknown desc = ${error.message}`, { cause: error });
  }
}

function readMount({ Type, Source, Target, ReadOnly, BindOptions, VolumeOptions }: Mount): TaskMount {
  const type = (Type ?? '').toLowerCase() || 'bind';
  if (type !== 'bind' && type !== 'volume') {
    // Later versions of the API have these two.
    if (type === 'tmpfs' || type === 'npipe') {
      throw new EngineError(
        'notImplemented',
        `mounts of the type ${type} are not implemented: version 1.24 of the API has bind and volume`,
      );
    }
    throw new EngineError('invalid', `invalid MountType: "${Type}"`);
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
      source: Source,
      target: Target,
      readOnly: ReadOnly,
      propagation,
      volume:
        VolumeOptions &&
        omitEmpty({
          noCopy: VolumeOptions.NoCopy,
          labels: VolumeOptions.Labels,
          driver: driver && omitEmpty({ name: driver.Name, options: driver.Options }),
        }),
    }),
  };
}

function readRestart(policy: NonNullable<TaskTemplateBody['RestartPolicy']>): NonNullable<TaskTemplate['restart']> {
  const condition = policy.Condition || 'any';
  if (condition !== 'none' && condition !== 'on-failure' && condition !== 'any') {
    throw new EngineError('invalid', `invalid RestartCondition: "${condition}"`);
  }
  return {
    condition,
    maxAttempts: policy.MaxAttempts ?? 0,
    ...omitEmpty({ delayNs: policy.Delay, windowNs: policy.Window }),
  };
}

/** The specification calls the field NanoCPU, its samples and all clients NanoCPUs. */
function readAmounts({ NanoCPUs, NanoCPU, MemoryBytes = 0 }: Amounts): Partial<Resources> {
  const nanoCpus = NanoCPUs ?? NanoCPU ?? 0;
  refuseArgument(
    nanoCpus !== 0 && nanoCpus < LEAST_NANO_CPUS,
    `invalid cpu value ${goNumber(nanoCpus / 1e9)}: Must be at least 0.001`,
  );
  refuseArgument(
    MemoryBytes !== 0 && MemoryBytes < LEAST_MEMORY,
    `invalid memory value ${MemoryBytes}: Must be at least 4MiB`,
  );
  return { ...(nanoCpus === 0 ? {} : { nanoCpus }), ...(MemoryBytes === 0 ? {} : { memoryBytes: MemoryBytes }) };
}

/** As Go's `%g` writes it: two digits of an exponent at least. */
function goNumber(value: number): string {
  return String(value).replace(/e([+-])(\d)$/, 'e$10$2');
}
