import { EngineError, refuseIf } from '../../lib/errors.ts';
import { isClusterName, MAX_CLUSTER_NAME_LETTERS } from '../../lib/notations/names.ts';
import { endpointOf, isJob } from '../state/defaults.ts';
import type { EndpointPort, EndpointSpec, ServiceSpec, UpdateConfig } from '../state/service-spec.ts';
import { filled, omitEmpty } from './omit-empty.ts';
import { refuseArgument } from './refuse-argument.ts';
import type { ServiceBody } from './schema.ts';
import { readTaskTemplate } from './task-template/read.ts';

/** Replicas that one leader can handle, with all services together (docs/cluster.md). */
export const MAX_REPLICAS = 100_000;
const LAST_PORT = 65_535;

/** The specification of a service, checked, with its networks as the client named them. */
export function readServiceSpec(body: ServiceBody): ServiceSpec {
  const mode = readMode(body.Mode ?? {});
  const endpoint = body.EndpointSpec ? readEndpoint(body.EndpointSpec) : undefined;
  const update = body.UpdateConfig ? readUpdate(body.UpdateConfig) : undefined;
  const rollback = body.RollbackConfig ? readUpdate(body.RollbackConfig) : undefined;
  const template = readTaskTemplate(body.TaskTemplate ?? {});
  for (const config of [update, rollback]) if (config !== undefined) checkUpdate(config);
  checkEndpoint(endpointOf({ endpoint }));
  refuseArgument(update !== undefined && isJob({ mode }), 'Jobs may not have an update config');
  const ofTask = body.TaskTemplate?.Networks ?? [];
  const name = body.Name ?? '';
  refuseArgument(name.length > MAX_CLUSTER_NAME_LETTERS, 'name must be 63 characters or fewer');
  refuseArgument(name !== '' && !isClusterName(name), 'name must be valid as a DNS name component');
  return {
    name,
    labels: body.Labels ?? {},
    template,
    mode,
    ...(ofTask.length === 0 ? {} : { hasTaskNetworks: true }),
    networks: (ofTask.length === 0 ? (body.Networks ?? []) : ofTask).map(({ Target = '', Aliases, DriverOpts }) => ({
      target: Target,
      aliases: Aliases ?? [],
      ...filled({ driverOpts: DriverOpts }),
    })),
    ...omitEmpty({ update, rollback, endpoint }),
  };
}

function readMode({
  Replicated,
  Global,
  ReplicatedJob,
  GlobalJob,
}: NonNullable<ServiceBody['Mode']>): ServiceSpec['mode'] {
  const modes = [Replicated, Global, ReplicatedJob, GlobalJob].filter(Boolean);
  refuseIf(modes.length > 1, 'must specify only one service mode');
  if (Global) return { kind: 'global' };
  if (GlobalJob) return { kind: 'global-job' };
  if (ReplicatedJob) {
    const maxConcurrent = ReplicatedJob.MaxConcurrent ?? 1;
    const totalCompletions = ReplicatedJob.TotalCompletions ?? maxConcurrent;
    const most = Math.max(maxConcurrent, totalCompletions);
    refuseArgument(most > MAX_REPLICAS, `a job has ${MAX_REPLICAS} tasks at most`);
    return { kind: 'replicated-job', maxConcurrent, totalCompletions };
  }
  // docker's command line sends a mode without a number.
  const replicas = Replicated?.Replicas ?? 1;
  refuseArgument(replicas > MAX_REPLICAS, `a service has ${MAX_REPLICAS} replicas at most`);
  return { kind: 'replicated', replicas };
}

function readUpdate(config: NonNullable<ServiceBody['UpdateConfig']>): UpdateConfig {
  const { FailureAction, Order, Monitor = 0, MaxFailureRatio = 0 } = config;
  const failureAction = FailureAction || 'pause';
  if (failureAction !== 'pause' && failureAction !== 'continue' && failureAction !== 'rollback') {
    throw new EngineError('invalid', `unrecognized update failure action ${failureAction}`);
  }
  const order = Order || 'stop-first';
  if (order !== 'stop-first' && order !== 'start-first') {
    throw new EngineError('invalid', `unrecognized update order ${order}`);
  }
  return {
    ...{ parallelism: config.Parallelism ?? 0, delayNs: config.Delay ?? 0, failureAction },
    ...(Monitor === 0 ? {} : { monitorNs: Monitor }),
    ...(MaxFailureRatio === 0 ? {} : { maxFailureRatio: MaxFailureRatio }),
    ...(order === 'stop-first' ? {} : { order }),
  };
}

function checkUpdate({ delayNs, monitorNs = 0, maxFailureRatio = 0 }: UpdateConfig): void {
  refuseArgument(delayNs < 0, 'TaskSpec: update-delay cannot be negative');
  refuseArgument(monitorNs < 0, 'TaskSpec: update-monitor cannot be negative');
  refuseArgument(
    maxFailureRatio < 0 || maxFailureRatio > 1,
    'TaskSpec: update-maxfailureratio cannot be less than 0 or bigger than 1',
  );
}

function readEndpoint({ Mode, Ports }: NonNullable<ServiceBody['EndpointSpec']>): EndpointSpec {
  const mode = (Mode ?? '').toLowerCase() || 'vip';
  if (mode !== 'vip' && mode !== 'dnsrr') throw new EngineError('invalid', `invalid resolution mode: "${Mode}"`);
  return { mode, ports: (Ports ?? []).map(readPort) };
}

type PortBody = NonNullable<NonNullable<ServiceBody['EndpointSpec']>['Ports']>[number];

function readPort({ Name, Protocol, TargetPort = 0, PublishedPort = 0, PublishMode }: PortBody): EndpointPort {
  const protocol = (Protocol ?? '').toLowerCase() || 'tcp';
  if (protocol !== 'tcp' && protocol !== 'udp') {
    throw new EngineError('invalid', `invalid protocol: "${Protocol}": a service publishes tcp or udp`);
  }
  // dockerd takes such numbers, and its tasks fail.
  for (const port of [TargetPort, PublishedPort]) refuseIf(port > LAST_PORT, `invalid port: ${port}`);
  refuseIf(TargetPort === 0, 'a published port needs its TargetPort');
  const mode = (PublishMode ?? '').toLowerCase();
  refuseIf(!['', 'ingress', 'host'].includes(mode), `invalid publish mode: "${PublishMode}"`);
  const port: EndpointPort = {
    ...omitEmpty({ name: Name }),
    protocol,
    targetPort: TargetPort,
    publishedPort: PublishedPort,
  };
  return mode === 'host' ? { ...port, mode } : port;
}

function checkEndpoint({ mode, ports }: EndpointSpec): void {
  refuseArgument(
    mode === 'dnsrr' && ports.some((port) => port.mode !== 'host'),
    "EndpointSpec: port published with ingress mode can't be used with dnsrr mode",
  );
  const published = ports
    .filter(({ publishedPort }) => publishedPort !== 0)
    .map((p) => `${p.publishedPort}/${p.protocol}`);
  refuseArgument(new Set(published).size < published.length, 'EndpointSpec: duplicate published ports provided');
}
