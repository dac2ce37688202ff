import type { CreateBody } from '../../containers/schema.ts';
import type { MountSpec } from '../../containers/settings/host-config/host-config-schema.ts';
import { filled, omitEmpty } from '../services/omit-empty.ts';
import { presentHealthcheck } from '../services/task-template/container.ts';
import { presentBind } from '../services/task-template/mounts.ts';
import { securityOptionsOf } from '../services/task-template/privileges.ts';
import type { TaskContainer, TaskMount, TaskTemplate } from '../state/task-template.ts';

/** The settings of a task's process, as a client would send them. */
export function containerSettings(container: TaskContainer): CreateBody {
  const { hostname, stopSignal, tty, openStdin, healthcheck } = container;
  return omitEmpty({
    Hostname: hostname,
    StopSignal: stopSignal,
    Tty: tty,
    OpenStdin: openStdin,
    Healthcheck: healthcheck && presentHealthcheck(healthcheck),
  });
}

/** The settings by which a task's container is tied to its node. */
export function hostSettings(container: TaskContainer): NonNullable<CreateBody['HostConfig']> {
  const { mounts, groups, readOnly, isolation, init, sysctls, hosts, dns, ulimits, privileges } = container;
  return {
    ...omitEmpty({ ReadonlyRootfs: readOnly }),
    Isolation: isolation ?? 'default',
    Ulimits: (ulimits ?? []).map(({ name, soft, hard }) => ({ Name: name, Soft: soft, Hard: hard })),
    ...(init === undefined ? {} : { Init: init }),
    ...filled({
      Mounts: mounts?.map(mountOf),
      GroupAdd: groups && [...groups],
      Sysctls: sysctls && { ...sysctls },
      ExtraHosts: hosts?.flatMap(extraHosts),
      Dns: dns?.nameservers && [...dns.nameservers],
      DnsSearch: dns?.search && [...dns.search],
      DnsOptions: dns?.options && [...dns.options],
      CapAdd: container.capAdd && [...container.capAdd],
      CapDrop: container.capDrop && [...container.capDrop],
      SecurityOpt: privileges && securityOptionsOf(privileges),
      OomScoreAdj: container.oomScoreAdj,
    }),
  };
}

/** Memory beyond RAM is limited together with it, as in the body of a creation. */
export function resourceSettings(resources: TaskTemplate['resources']): NonNullable<CreateBody['HostConfig']> {
  const { limits, swapBytes, memorySwappiness } = resources ?? {};
  const memory = limits?.memoryBytes ?? 0;
  const pids = limits?.pids ?? 0;
  return {
    ...omitEmpty({ Memory: limits?.memoryBytes, NanoCpus: limits?.nanoCpus }),
    ...(pids > 0 ? { PidsLimit: pids } : {}),
    ...(swapBytes === undefined ? {} : { MemorySwap: swapBytes === -1 ? -1 : memory + swapBytes }),
    ...(memorySwappiness === undefined ? {} : { MemorySwappiness: memorySwappiness }),
  };
}

/** A line of /etc/hosts, as a client writes it: `NAME:ADDRESS`. Further names are ignored, as by dockerd. */
function extraHosts(line: string): string[] {
  const [address = '', name] = line.trim().split(/\s+/);
  return name === undefined ? [] : [`${name}:${address}`];
}

function mountOf(mount: TaskMount): MountSpec {
  const { type, source, target, readOnly, volume, tmpfs, image } = mount;
  const driver = volume?.driver;
  const bind = presentBind(mount);
  return {
    Type: type,
    ...omitEmpty({
      Source: source,
      Target: target,
      ReadOnly: readOnly,
      BindOptions: Object.keys(bind).length === 0 ? undefined : bind,
      VolumeOptions:
        volume &&
        omitEmpty({
          NoCopy: volume.noCopy,
          Subpath: volume.subpath,
          Labels: volume.labels && { ...volume.labels },
          DriverConfig: driver && omitEmpty({ Name: driver.name, Options: driver.options && { ...driver.options } }),
        }),
      TmpfsOptions:
        tmpfs &&
        omitEmpty({
          SizeBytes: tmpfs.sizeBytes,
          Mode: tmpfs.mode,
          Options: tmpfs.options && tmpfs.options.map((words) => [...words]),
        }),
      ImageOptions: image && omitEmpty({ Subpath: image.subpath }),
    }),
  };
}
