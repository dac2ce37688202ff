import type { Config } from '../config/daemon-config.ts';
import { describe } from '../images/present.ts';
import type { DeliveryStatus } from '../logs/delivery/delivery.ts';
import { logDriverOf } from '../logs/drivers.ts';
import type { Endpoint } from '../networks/endpoints/endpoint.ts';
import { listedPorts, networkSettings, presentEndpoints, type Member } from '../networks/present.ts';
import { networkModeOf } from '../networks/settings/mode.ts';
import type { IndexEntry } from '../registry/manifests.ts';
import type { Health } from './health/store.ts';
import { humanDuration } from './queries/durations.ts';
import { etcFilesOf } from './runs/preparation/etc-files.ts';
import type { Inspect, Mount, Summary } from './schema.ts';
import { securityOptions } from './settings/security-option.ts';
import { exitCodeOf, isAlive, type ContainerState } from './state.ts';
import type { Container, MountPoint } from './store.ts';

const NEVER = '0001-01-01T00:00:00Z';

/** Data from other domains for the presentation. */
export type Around = {
  config: Config;
  now: Temporal.Instant;
  endpoints: readonly Endpoint[];
  /** Ports that its networks expose, such as `80/tcp`. */
  exposed: readonly string[];
  /** The image's name if it still belongs to the container's image, otherwise the id. */
  imageName: string;
  /** The image's manifest, if its registry's document is kept. */
  manifest: IndexEntry | undefined;
  /** Undefined if it was never checked. */
  health: Health | undefined;
  execIds: readonly string[];
  links: string[] | null;
  /** The container whose /etc/hosts and similar files it uses: itself, or the owner of its network. */
  filesOf: string;
  /** The container's aliases in others. */
  linkNames: readonly string[];
  /** The delivery of its log, if it has a receiver. */
  delivery: DeliveryStatus | undefined;
};

/** A container as GET /containers/json shows it. */
export function presentSummary(container: Container, around: Around): Summary {
  const { id, name, imageId, path, args, createdAt, config, hostConfig, state } = container;
  const member = memberOf(container, around);
  return {
    Id: id,
    Names: [`/${name}`, ...around.linkNames],
    Image: around.imageName,
    ImageID: imageId,
    ...(around.manifest && { ImageManifestDescriptor: describe(around.manifest) }),
    Command: [path, ...args].map((word) => (/\s/.test(word) ? `'${word}'` : word)).join(' '),
    Created: Math.floor(createdAt.epochMilliseconds / 1000),
    Ports: listedPorts(member),
    Labels: config.Labels,
    State: wireStatus(state),
    Status: statusText(container, around),
    Health: { Status: around.health?.status ?? 'none', FailingStreak: around.health?.failingStreak ?? 0 },
    HostConfig: {
      NetworkMode: hostConfig.NetworkMode,
      ...(hostConfig.Annotations && { Annotations: hostConfig.Annotations }),
    },
    NetworkSettings: { Networks: presentEndpoints(member) },
    Mounts: container.mounts.map(presentMount),
  };
}

/** A container as GET /containers/{id}/json shows it. */
export function presentInspect(container: Container, around: Around, graphDriver: Record<string, string>): Inspect {
  const { id, name, state, config, hostConfig } = container;
  const { delivery } = around;
  const files = etcFilesOf(around.config, around.filesOf);
  const status = wireStatus(state);
  const hasRun = state.status !== 'created';
  return {
    Id: id,
    Created: container.createdAt.toString(),
    Path: container.path,
    Args: [...container.args],
    State: {
      Status: status,
      Running: isAlive(state) || status === 'restarting',
      Paused: status === 'paused',
      Restarting: status === 'restarting',
      OOMKilled: container.oomKilled,
      Dead: false,
      Pid: isAlive(state) ? state.pid : 0,
      ExitCode: exitCodeOf(state),
      Error: container.error,
      StartedAt: 'startedAt' in state ? state.startedAt.toString() : NEVER,
      FinishedAt: 'finishedAt' in state ? state.finishedAt.toString() : NEVER,
      ...(around.health && { Health: presentHealth(around.health) }),
    },
    Image: container.imageId,
    ...(around.manifest && { ImageManifestDescriptor: describe(around.manifest) }),
    ResolvConfPath: hasRun ? files.resolvConf : '',
    HostnamePath: hasRun ? files.hostname : '',
    HostsPath: hasRun ? files.hosts : '',
    LogPath: hasRun && logDriverOf(container).showsPath ? container.logPath : '',
    ...(delivery && { LogDelivery: { Lost: delivery.lost, Error: delivery.error } }),
    Name: `/${name}`,
    RestartCount: container.restartCount,
    Driver: 'overlay2',
    Platform: 'linux',
    MountLabel: '',
    ProcessLabel: '',
    AppArmorProfile: container.appArmorProfile ?? securityOptions(container.hostConfig).apparmor,
    ExecIDs: around.execIds.length === 0 ? null : [...around.execIds],
    HostConfig: { ...hostConfig, Links: around.links },
    GraphDriver: { Data: graphDriver, Name: 'overlay2' },
    Mounts: container.mounts.map(presentMount),
    Config: config,
    NetworkSettings: networkSettings(memberOf(container, around)),
  };
}

/** The words of the API for a state. */
export function wireStatus(state: ContainerState): string {
  switch (state.status) {
    case 'starting':
      return wireStatus(state.from);
    case 'stopping':
      return 'running';
    case 'removing':
      return 'removing';
    case 'created':
    case 'running':
    case 'paused':
    case 'restarting':
    case 'exited':
      return state.status;
  }
}

function presentHealth({ status, failingStreak, log }: Health): NonNullable<Inspect['State']['Health']> {
  return {
    Status: status,
    FailingStreak: failingStreak,
    Log: log.map(({ start, end, exitCode, output }) => ({
      Start: start.toString(),
      End: end.toString(),
      ExitCode: exitCode,
      Output: output,
    })),
  };
}

type Now = Pick<Around, 'now' | 'health'>;

function statusText({ state }: Pick<Container, 'state'>, { now, health }: Now): string {
  const since = (then: Temporal.Instant): string => humanDuration(then.until(now).total('seconds'));
  switch (state.status) {
    case 'created':
      return 'Created';
    case 'running':
    case 'stopping':
      return `Up ${since(state.startedAt)}${healthText(health)}`;
    case 'paused':
      return `Up ${since(state.startedAt)} (Paused)`;
    case 'restarting':
      return `Restarting (${state.exitCode}) ${since(state.finishedAt)} ago`;
    case 'exited':
      return `Exited (${state.exitCode}) ${since(state.finishedAt)} ago`;
    case 'starting':
      return statusText({ state: state.from }, { now, health });
    case 'removing':
      return 'Removal In Progress';
  }
}

function healthText(health: Health | undefined): string {
  if (health === undefined) return '';
  return health.status === 'starting' ? ' (health: starting)' : ` (${health.status})`;
}

function presentMount(mount: MountPoint): Mount {
  const { type, name = '', driver = '', source, destination, mode, writable, propagation } = mount;
  return {
    Type: type,
    ...(type === 'volume' && { Name: name, Driver: driver }),
    ...(type === 'image' && { Name: name }),
    Source: source,
    Destination: destination,
    Mode: mode,
    RW: writable,
    Propagation: propagation,
  };
}

function memberOf({ attachments, config, hostConfig, state }: Container, { endpoints, exposed }: Around): Member {
  return {
    endpoints,
    attachments,
    isNew: state.status === 'created',
    mode: networkModeOf(hostConfig.NetworkMode),
    isDisabled: config.NetworkDisabled === true,
    exposed,
    pid: isAlive(state) ? state.pid : undefined,
  };
}
