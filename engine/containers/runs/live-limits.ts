import { basename } from 'node:path';

import type { Engine } from '../../engine.ts';
import {
  applyLimits,
  LimitRefused,
  planLimits,
  revertLimits,
  type DeviceLimit,
  type LimitValues,
  type LimitWrite,
} from '../../host/cgroups/cgroup-limits.ts';
import { detectCgroups, hasCgroup } from '../../host/cgroups/cgroups.ts';
import { propertyWords, setUnitProperties } from '../../host/cgroups/systemd.ts';
import type { Limits } from '../../oci/description.ts';
import { blockDevice, cpuTime } from '../../oci/resources.ts';
import { systemdProperties } from '../../oci/systemd-properties.ts';
import type { HostConfig } from '../settings/host-config/host-config-schema.ts';
import { isAlive } from '../state.ts';
import type { Container } from '../store.ts';
import { limitsOf } from './limits-of.ts';
import { cgroupPathOf, runtimeCgroupOf } from './places.ts';

type Needs = Pick<Engine, 'containers'>;

/**
 * Writes the limits in which `after` differs into the cgroup of a running container. Disposing takes them back; the
 * record notes the unfinished change meanwhile, for the next daemon. Throws `LimitRefused`.
 */
export async function changeLiveLimits(
  engine: Needs,
  container: Container,
  after: HostConfig,
): Promise<AsyncDisposable & { keep: () => void }> {
  const { id, state, hostConfig } = container;
  const values = changedLimits(hostConfig, after);
  const writes =
    isAlive(state) && Object.keys(values).length > 0
      ? await planLimits(detectCgroups(), cgroupPathOf(container), values)
      : [];
  const back = unitWords(container, after, hostConfig);
  const revert = async (): Promise<void> => {
    await tellSystemd(container, back);
    await revertLimits(writes);
    forget(engine, id);
  };
  if (writes.length > 0) {
    engine.containers.change(id, (current) => ({ ...current, limitWrites: writes, unitWords: back }));
    try {
      await apply(container, writes, unitWords(container, hostConfig, after));
    } catch (error) {
      await revert();
      throw error;
    }
  }
  let isKept = false;
  return {
    keep: () => (isKept = true),
    [Symbol.asyncDispose]: async () => {
      if (!isKept && writes.length > 0) await revert();
    },
  };
}

/** Takes back the unfinished update of a killed daemon. */
export async function revertCutOffUpdate(engine: Needs, container: Container): Promise<void> {
  const { id, limitWrites = [], unitWords: back = [] } = container;
  if (limitWrites.length === 0) return;
  await tellSystemd(container, back);
  await revertLimits(limitWrites);
  forget(engine, id);
}

/** systemd rounds its values, and writes them into the files; the exact limits are written after that. */
async function apply(container: Container, writes: readonly LimitWrite[], words: readonly string[]): Promise<void> {
  try {
    await applyLimits(writes);
    if (words.length === 0) return;
    await tellSystemd(container, words);
    await applyLimits(writes);
    // The weight is not changed by an update, but systemd writes it too, for the scheduler BFQ by a scale of its own.
    const { BlkioWeight } = container.hostConfig;
    const weight = BlkioWeight > 0 ? { blkioWeight: BlkioWeight } : {};
    await applyLimits(await planLimits(detectCgroups(), cgroupPathOf(container), weight));
  } catch (error) {
    // Its run is over: the next one has the new limits.
    if (!(error instanceof LimitRefused && error.isGone)) throw error;
  }
}

/**
 * systemd resets limits that it does not know at its next reload. The weight of input and output is told with each change:
 * crun 1.21 has told another one at the start, by a scale of its own, which systemd would write with the others.
 */
function unitWords(container: Container, before: HostConfig, after: HostConfig): string[] {
  if (!runtimeCgroupOf(container).bySystemd) return [];
  const { version } = detectCgroups();
  const known = { ...systemdProperties(limitsOf(before), version), IOWeight: undefined };
  return propertyWords(known, systemdProperties(limitsOf(after), version));
}

async function tellSystemd(container: Container, words: readonly string[]): Promise<void> {
  const path = cgroupPathOf(container);
  try {
    await setUnitProperties(basename(path), words);
  } catch (error) {
    if (hasCgroup(detectCgroups(), path)) throw error; // else the run is over, and the next one has the new limits
  }
}

function forget({ containers }: Needs, id: string): void {
  if (containers.get(id)?.limitWrites === undefined) return;
  containers.change(id, ({ limitWrites: _written, unitWords: _told, ...current }) => current);
}

function changedLimits(before: HostConfig, after: HostConfig): LimitValues {
  const [old, now] = [limitsOf(before), limitsOf(after)];
  const differs = (...keys: (keyof typeof old)[]): boolean => keys.some((key) => old[key] !== now[key]);
  const { quota, period } = cpuTime(now);
  return {
    ...(differs('cpuShares') && { cpuShares: now.cpuShares }),
    ...(differs('nanoCpus', 'cpuQuotaUs', 'cpuPeriodUs') && { cpuTime: { quotaUs: quota, periodUs: period } }),
    ...(differs('realtimePeriodUs', 'realtimeRuntimeUs') && {
      realtime: { periodUs: now.realtimePeriodUs, runtimeUs: now.realtimeRuntimeUs },
    }),
    ...(differs('cpusetCpus') && { cpusetCpus: now.cpusetCpus }),
    ...(differs('cpusetMems') && { cpusetMems: now.cpusetMems }),
    ...(differs('memoryBytes', 'memorySwapBytes') && {
      memory: { bytes: now.memoryBytes, withSwapBytes: now.memorySwapBytes },
    }),
    ...(differs('memoryReservationBytes') && { reservationBytes: now.memoryReservationBytes }),
    ...(differs('pids') && { pids: now.pids }),
    ...(differs('blkioWeight') && { blkioWeight: now.blkioWeight }),
    ...deviceLimits(old, now),
  };
}

/** The limits of block devices that differ; a device that is not listed any more has none. */
function deviceLimits(before: Limits, after: Limits): Pick<LimitValues, 'devices'> {
  const old = listedDevices(before);
  const devices = new Map([...old].map(([key, limit]) => [key, { ...limit, value: 0 }]));
  for (const [key, limit] of listedDevices(after)) devices.set(key, limit);
  const changed = [...devices].filter(([key, { value }]) => old.get(key)?.value !== value);
  return changed.length === 0 ? {} : { devices: changed.map(([, limit]) => limit) };
}

function listedDevices(limits: Limits): Map<string, DeviceLimit> {
  const { blkioWeightDevices, readBps, writeBps, readIops, writeIops } = limits;
  const weights = blkioWeightDevices.map(({ path, weight }) => ({ path, rate: weight }));
  const listed = new Map<string, DeviceLimit>();
  for (const [kind, list] of Object.entries({ weight: weights, readBps, writeBps, readIops, writeIops })) {
    for (const { path, rate } of list) {
      const device = blockDevice(path);
      if (device === undefined) continue; // removed from the machine meanwhile
      const number = `${device.major}:${device.minor}`;
      listed.set(`${kind} ${number}`, { kind: kind as DeviceLimit['kind'], number, value: rate });
    }
  }
  return listed;
}
