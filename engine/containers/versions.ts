import type { ErrorStatuses } from '../http/errors.ts';
import type { Steps } from '../http/versions/steps.ts';
import type { CreateBody, UpdateBody, WaitResult } from './schema.ts';
import type { HostConfigBody } from './settings/host-config/host-config-schema.ts';
import type { NetworkCounters, Stats } from './stats/schema.ts';

/** Newest first; each applies to requests of older versions. */
export const createSteps: Steps<CreateBody> = [
  { below: '1.40', request: ofBefore140 },
  { below: '1.25', request: clientRemoves },
];

export const statsSteps: Steps<unknown, Stats> = [{ below: '1.21', response: oneNetwork }];

export const updateSteps: Steps<UpdateBody> = [{ below: '1.40', request: withoutPidsLimit }];

export const waitSteps: Steps<unknown, WaitResult> = [{ below: '1.34', response: codeAlone }];

/** The specification of 1.24 has no 409 for a container in the wrong state. */
export const wrongState: ErrorStatuses = { conflict: { below: '1.25', status: 500 } };

/** Containers of older clients can share their IPC namespace, and have no limit of TCP buffers. */
function ofBefore140({ HostConfig, ...body }: CreateBody): CreateBody {
  return HostConfig === undefined ? fieldsBefore140(body) : { ...body, HostConfig: fieldsBefore140(HostConfig) };
}

function fieldsBefore140<T extends HostConfigBody>({
  KernelMemoryTCP: _later,
  ...fields
}: T): Omit<T, 'KernelMemoryTCP'> {
  return { ...fields, IpcMode: fields.IpcMode || 'shareable' };
}

/** Older clients remove the container themselves, regardless of the body. */
function clientRemoves({ HostConfig, AutoRemove: _beside, ...body }: CreateBody): CreateBody {
  return HostConfig === undefined ? body : { ...body, HostConfig: { ...HostConfig, AutoRemove: false } };
}

/** The field came later to updates than to creations. */
function withoutPidsLimit({ PidsLimit: _later, ...body }: UpdateBody): UpdateBody {
  return body;
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
