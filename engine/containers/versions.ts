import type { ErrorStatuses } from '../http/errors.ts';
import type { ApiVersion } from '../http/versions/api-version.ts';
import { downgradedAnswer, stepsFor, type Steps } from '../http/versions/steps.ts';
import type { Endpoints } from '../networks/schema.ts';
import { withNamesAsAliases, withoutNames } from '../networks/versions.ts';
import { MAC_IS_DEPRECATED, type NetworkDefaults } from './networks/requested-networks.ts';
import type { InspectForm } from './queries/inspect.ts';
import type { CreateBody, Created, Inspect, Summary, UpdateBody, WaitResult } from './schema.ts';
import type { HostConfigBody, MountSpec } from './settings/host-config/host-config-schema.ts';
import { DRIVER_IS_IGNORED, type MountDefaults } from './settings/mounts/requested-mounts.ts';
import type { NetworkCounters, Stats } from './stats/schema.ts';

type CreateRequest = CreateBody & NetworkDefaults & MountDefaults;

/** Newest first; each applies to requests of older versions. */
export const createSteps: Steps<CreateRequest, Created> = [
  { below: '1.52', request: leaveEmptyBindings },
  { below: '1.48', request: takeInterfaceSysctls, response: withoutDriverWarning },
  { below: '1.44', request: withoutEndpointMacs, response: withoutMacWarning },
  { below: '1.44', request: readOnlyBindsStayFlat },
  { below: '1.42', request: dropForeignMountOptions },
  { below: '1.40', request: ofBefore140 },
  { below: '1.25', request: clientRemoves },
];

/** Newest first; an inspect is cached in the form of each era. */
export const inspectSteps: Steps<unknown, Inspect> = [
  { below: '1.45', response: (shown) => withNetworks(shown, withNamesAsAliases) },
  { below: '1.44', response: (shown) => withNetworks(shown, withoutNames) },
];

const INSPECT_FORMS: readonly InspectForm[] = [0, ...inspectSteps.keys().map((index) => index + 1)].map(
  (count) => (shown) => downgradedAnswer(inspectSteps.slice(0, count), shown),
);

/** The form of inspects for a version: the same function for all versions without a step between them. */
export function inspectForm(version: ApiVersion): InspectForm {
  return INSPECT_FORMS[stepsFor(inspectSteps, { apiVersion: version, isNamed: true }).length]!;
}

export const listSteps: Steps<unknown, Summary[]> = [
  { below: '1.45', response: (list) => list.map((shown) => withNetworks(shown, withNamesAsAliases)) },
  { below: '1.44', response: (list) => list.map((shown) => withNetworks(shown, withoutNames)) },
];

export const statsSteps: Steps<unknown, Stats> = [{ below: '1.21', response: oneNetwork }];

export const updateSteps: Steps<UpdateBody> = [
  { below: '1.55', request: withoutDeviceLimits },
  { below: '1.40', request: withoutPidsLimit },
];

export const waitSteps: Steps<unknown, WaitResult> = [{ below: '1.34', response: codeAlone }];

/** The specification of 1.24 has no 409 for a container in the wrong state. */
export const wrongState: ErrorStatuses = { conflict: { below: '1.25', status: 500 } };

function withNetworks<T extends { NetworkSettings: { Networks: Endpoints } }>(
  { NetworkSettings, ...shown }: T,
  change: (endpoints: Endpoints) => Endpoints,
): T {
  return { ...shown, NetworkSettings: { ...NetworkSettings, Networks: change(NetworkSettings.Networks) } } as T;
}

function leaveEmptyBindings(body: CreateRequest): CreateRequest {
  return { ...body, leavesEmptyBindings: true };
}

function takeInterfaceSysctls(body: CreateRequest): CreateRequest {
  return { ...body, takesInterfaceSysctls: true };
}

/** Older clients send back the hardware addresses that an inspect has shown. */
function withoutEndpointMacs({ NetworkingConfig, ...body }: CreateRequest): CreateRequest {
  if (NetworkingConfig?.EndpointsConfig == null) return { ...body, ...(NetworkingConfig && { NetworkingConfig }) };
  const endpoints = Object.entries(NetworkingConfig.EndpointsConfig).map(([network, settings]) => {
    const { MacAddress: _shown, ...rest } = settings ?? {};
    return [network, settings === null ? null : rest] as const;
  });
  return { ...body, NetworkingConfig: { ...NetworkingConfig, EndpointsConfig: Object.fromEntries(endpoints) } };
}

function withoutMacWarning({ Id, Warnings }: Created): Created {
  return { Id, Warnings: Warnings.filter((warning) => warning !== MAC_IS_DEPRECATED) };
}

function withoutDriverWarning({ Id, Warnings }: Created): Created {
  return { Id, Warnings: Warnings.filter((warning) => warning !== DRIVER_IS_IGNORED) };
}

/** For older clients, the mounts below a read-only one stay writable. */
function readOnlyBindsStayFlat(body: CreateRequest): CreateRequest {
  return { ...body, readOnlyIsFlat: true };
}

/** Older daemons ignored these options of another type; the others were refused at all times. */
function dropForeignMountOptions({ HostConfig, ...body }: CreateRequest): CreateRequest {
  const { Mounts } = HostConfig ?? {};
  if (!Mounts) return HostConfig === undefined ? body : { ...body, HostConfig };
  return { ...body, HostConfig: { ...HostConfig, Mounts: Mounts.map(withoutForeignOptions) } };
}

function withoutForeignOptions({ TmpfsOptions, VolumeOptions, ...mount }: MountSpec): MountSpec {
  const isTmpfs = mount.Type === 'tmpfs';
  return {
    ...mount,
    ...(isTmpfs && TmpfsOptions && { TmpfsOptions }),
    ...(!isTmpfs && VolumeOptions && { VolumeOptions }),
  };
}

/** Containers of older clients can share their IPC namespace, and have no limit of TCP buffers. */
function ofBefore140({ HostConfig, ...body }: CreateRequest): CreateRequest {
  return HostConfig === undefined ? fieldsBefore140(body) : { ...body, HostConfig: fieldsBefore140(HostConfig) };
}

function fieldsBefore140<T extends HostConfigBody>({
  KernelMemoryTCP: _later,
  ...fields
}: T): Omit<T, 'KernelMemoryTCP'> {
  return { ...fields, IpcMode: fields.IpcMode || 'shareable' };
}

/** Older clients remove the container themselves, regardless of the body. */
function clientRemoves({ HostConfig, AutoRemove: _beside, ...body }: CreateRequest): CreateRequest {
  return HostConfig === undefined ? body : { ...body, HostConfig: { ...HostConfig, AutoRemove: false } };
}

/** The field came later to updates than to creations. */
function withoutPidsLimit({ PidsLimit: _later, ...body }: UpdateBody): UpdateBody {
  return body;
}

/** Limits of single block devices came later to updates than to creations. */
function withoutDeviceLimits(body: UpdateBody): UpdateBody {
  const devices = new Set(Object.keys(body).filter((field) => /^Blkio.*Device/.test(field)));
  return Object.fromEntries(Object.entries(body).filter(([field]) => !devices.has(field)));
}

/** Older clients know no reason beside the code. */
function codeAlone({ StatusCode }: WaitResult): WaitResult {
  return { StatusCode };
}

/** Older clients know only one network: the sum of all. */
function oneNetwork({ name: _name, id: _id, networks = {}, ...stats }: Stats): Stats {
  const network: NetworkCounters = {
    rx_bytes: 0,
    rx_packets: 0,
    rx_errors: 0,
    rx_dropped: 0,
    tx_bytes: 0,
    tx_packets: 0,
    tx_errors: 0,
    tx_dropped: 0,
  };
  for (const counters of Object.values(networks)) {
    for (const key of Object.keys(network) as (keyof NetworkCounters)[]) network[key] += counters[key];
  }
  return { ...stats, network } as unknown as Stats;
}
