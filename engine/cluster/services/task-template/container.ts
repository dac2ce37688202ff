import { parseReference } from '../../../images/names/reference.ts';
import { EngineError } from '../../../lib/errors.ts';
import { presentReferences, readReferences } from '../../secrets/references.ts';
import type { TaskContainer, TaskHealthcheck } from '../../state/task-template.ts';
import { filled, omitEmpty } from '../omit-empty.ts';
import { refuseArgument } from '../refuse-argument.ts';
import { checkTemplates } from './expansion.ts';
import { presentMount, readMounts, refuseSharedTargets } from './mounts.ts';
import { presentPrivileges, readPrivileges } from './privileges.ts';
import type { ContainerBody } from './schema.ts';

const LEAST_NS = 1e6;

/** The container of a service's tasks, not yet checked as a whole. */
export function readContainer(body: ContainerBody): TaskContainer {
  const { Isolation: isolation, DNSConfig: dns, Ulimits: ulimits, Privileges: privileges } = body;
  const mounts = body.Mounts ? readMounts(body.Mounts) : undefined;
  return {
    image: body.Image ?? '',
    ...omitEmpty({
      labels: body.Labels,
      command: body.Command,
      args: body.Args,
      env: body.Env,
      dir: body.Dir,
      user: body.User,
      mounts,
      stopGracePeriodNs: body.StopGracePeriod,
      hostname: body.Hostname,
      stopSignal: body.StopSignal,
      tty: body.TTY,
      openStdin: body.OpenStdin,
      readOnly: body.ReadOnly,
      isolation: isolation === 'process' || isolation === 'hyperv' ? isolation : undefined,
      dns: dns && filled({ nameservers: dns.Nameservers, search: dns.Search, options: dns.Options }),
      healthcheck: body.Healthcheck && readHealthcheck(body.Healthcheck),
      privileges: privileges && readPrivileges(privileges),
    }),
    ...filled({
      groups: body.Groups,
      sysctls: body.Sysctls,
      hosts: body.Hosts,
      capAdd: body.CapabilityAdd,
      capDrop: body.CapabilityDrop,
      ulimits: ulimits?.map((one) => ({ name: one?.Name ?? '', soft: one?.Soft ?? 0, hard: one?.Hard ?? 0 })),
      oomScoreAdj: body.OomScoreAdj,
    }),
    ...(typeof body.Init === 'boolean' ? { init: body.Init } : {}),
  };
}

/** Completes and checks a container, in the order in which dockerd checks; refusals have its words. */
export function checkContainer(container: TaskContainer, body: ContainerBody): TaskContainer {
  checkImage(container.image);
  const references = readReferences(body);
  if (container.mounts !== undefined) refuseSharedTargets(container.mounts);
  if (container.healthcheck !== undefined) checkHealthcheck(container.healthcheck);
  checkTemplates(container);
  return { ...container, ...references };
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

function readHealthcheck(body: NonNullable<ContainerBody['Healthcheck']>): TaskHealthcheck {
  return filled({
    test: body.Test,
    intervalNs: body.Interval,
    timeoutNs: body.Timeout,
    startPeriodNs: body.StartPeriod,
    startIntervalNs: body.StartInterval,
    retries: body.Retries,
  });
}

function checkHealthcheck(check: TaskHealthcheck): void {
  for (const [name, ns = 0] of [
    ['Interval', check.intervalNs],
    ['Timeout', check.timeoutNs],
    ['StartPeriod', check.startPeriodNs],
    ['StartInterval', check.startIntervalNs],
  ] as const) {
    const isTooShort = ns !== 0 && ns < LEAST_NS;
    refuseArgument(isTooShort, `ContainerSpec: ${name} in HealthConfig cannot be less than 1ms`);
  }
  refuseArgument((check.retries ?? 0) < 0, 'ContainerSpec: Retries in HealthConfig cannot be negative');
}

/** The specification's "ContainerSpec". */
export function presentContainer(container: TaskContainer): object {
  const { healthcheck: check, dns } = container;
  return {
    Image: container.image,
    ...filled({
      Labels: container.labels,
      Command: container.command,
      Args: container.args,
      Hostname: container.hostname,
      Env: container.env,
      Dir: container.dir,
      User: container.user,
      Groups: container.groups,
    }),
    ...omitEmpty({
      Privileges: container.privileges && presentPrivileges(container.privileges),
      StopSignal: container.stopSignal,
      TTY: container.tty,
      OpenStdin: container.openStdin,
      ReadOnly: container.readOnly,
    }),
    ...filled({ Mounts: container.mounts?.map(presentMount) }),
    ...omitEmpty({
      StopGracePeriod: container.stopGracePeriodNs,
      Healthcheck: check && presentHealthcheck(check),
    }),
    ...(container.init === undefined ? {} : { Init: container.init }),
    ...filled({ Hosts: container.hosts }),
    ...omitEmpty({
      DNSConfig: dns && filled({ Nameservers: dns.nameservers, Search: dns.search, Options: dns.options }),
    }),
    ...presentReferences(container),
    Isolation: container.isolation ?? 'default',
    ...filled({
      Sysctls: container.sysctls,
      CapabilityAdd: container.capAdd,
      CapabilityDrop: container.capDrop,
      Ulimits: container.ulimits?.map(({ name, soft, hard }) => ({ Name: name, Hard: hard, Soft: soft })),
      OomScoreAdj: container.oomScoreAdj,
    }),
  };
}

export function presentHealthcheck(check: TaskHealthcheck) {
  return filled({
    Test: check.test && [...check.test],
    Interval: check.intervalNs,
    Timeout: check.timeoutNs,
    StartPeriod: check.startPeriodNs,
    StartInterval: check.startIntervalNs,
    Retries: check.retries,
  });
}
