import { EngineError } from '../../lib/errors.ts';

const CONTAINER = [
  ...['CapabilityAdd', 'CapabilityDrop', 'DNSConfig', 'Groups', 'Healthcheck', 'Hostname', 'Hosts', 'Init'],
  ...['Isolation', 'OomScoreAdj', 'OpenStdin', 'Privileges', 'ReadOnly', 'StopSignal', 'Sysctls', 'TTY'],
  'Ulimits',
];
const MOUNT = [
  ...['ClusterOptions', 'ImageOptions', 'TmpfsOptions', 'VolumeOptions.Subpath'],
  ...['NonRecursive', 'CreateMountpoint', 'ReadOnlyNonRecursive', 'ReadOnlyForceRecursive'].map(
    (name) => `BindOptions.${name}`,
  ),
];
const TASK = [
  ...CONTAINER.map((name) => `ContainerSpec.${name}`),
  ...MOUNT.map((name) => `ContainerSpec.Mounts.${name}`),
  ...['NetworkAttachmentSpec', 'Networks.DriverOpts', 'PluginSpec', 'Runtime'],
  ...['Placement.MaxReplicas', 'Placement.Platforms', 'Placement.Preferences'],
  ...['Resources.Limits.Pids', 'Resources.MemorySwappiness', 'Resources.Reservations.GenericResources'],
  'Resources.SwapBytes',
];
/** Kinds of services; an empty one asks for it too. */
const MODES = ['Mode.GlobalJob', 'Mode.ReplicatedJob'];
/** Fields of versions after 1.24 that change how tasks run. All other unknown fields are ignored. */
const LATER = [...TASK.map((name) => `TaskTemplate.${name}`), ...MODES, 'Networks.DriverOpts'];

/** Values of these fields that say what is done anyway: clients send them unasked. */
const USUAL: ReadonlyMap<string, string> = new Map(
  Object.entries({
    'TaskTemplate.ContainerSpec.Isolation': 'default',
    'TaskTemplate.Runtime': 'container',
  }),
);

/** Refuses, by its name, a field without which the tasks would not be those that the client wants. */
export function refuseLaterFields(body: object): void {
  for (const field of LATER) {
    const isAsked = (value: unknown): boolean =>
      MODES.includes(field) ? value !== null : !isEmpty(value) && value !== USUAL.get(field);
    if (valuesAt(body, field.split('.')).some(isAsked)) {
      throw new EngineError('notImplemented', `${field} is not implemented: version 1.24 of the API does not have it`);
    }
  }
}

/** Also of each entry of a list. */
function valuesAt(value: unknown, [name, ...rest]: readonly string[]): unknown[] {
  if (name === undefined) return [value];
  if (Array.isArray(value)) return value.flatMap((one) => valuesAt(one, [name, ...rest]));
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return [];
  return valuesAt((value as Readonly<Record<string, unknown>>)[name], rest);
}

/** Empty values ask for nothing. */
function isEmpty(value: unknown): boolean {
  if (typeof value === 'object' && value !== null) return Object.values(value).every(isEmpty);
  return value === undefined || value === null || value === '' || value === 0 || value === false;
}
