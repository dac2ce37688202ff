import type { Config } from '../config/config.ts';
import type { Attachment } from '../networks/attach.ts';
import { humanDuration } from './durations.ts';
import { etcFilesOf } from './etc-files.ts';
import type { Endpoint, Inspect, Mount, Summary } from './schema.ts';
import { exitCodeOf, isAlive, type ContainerState } from './state.ts';
import type { Container, MountPoint } from './store.ts';

const NEVER = '0001-01-01T00:00:00Z';

/** What the presentation needs from other domains. */
export type Around = {
  config: Config;
  now: Temporal.Instant;
  attachment: Attachment | undefined;
  /** Of the network that it was in last; empty before the first start. */
  networkId: string;
  /** Name of the image where it still has the one that the container was made of, its id otherwise. */
  imageName: string;
  execIds: readonly string[];
  links: string[] | null;
  /** Its names in other containers. */
  linkNames: readonly string[];
  graphDriver: Record<string, string>;
};

/** A container as GET /containers/json shows it. */
export function presentSummary(container: Container, around: Around): Summary {
  const { id, name, imageId, path, args, createdAt, config, hostConfig, state } = container;
  return {
    Id: id,
    Names: [`/${name}`, ...around.linkNames],
    Image: around.imageName,
    ImageID: imageId,
    Command: [path, ...args].map((word) => (/\s/.test(word) ? `'${word}'` : word)).join(' '),
    Created: Math.floor(createdAt.epochMilliseconds / 1000),
    Ports: summaryPorts(container, around.attachment),
    Labels: config.Labels,
    State: wireStatus(state),
    Status: statusText(container, around.now),
    HostConfig: { NetworkMode: hostConfig.NetworkMode },
    NetworkSettings: { Networks: networksOf(container, around) },
    Mounts: container.mounts.map(presentMount),
  };
}

/** A container as GET /containers/{id}/json shows it. */
export function presentInspect(container: Container, around: Around): Inspect {
  const { id, name, state, config, hostConfig } = container;
  const files = etcFilesOf(around.config, id);
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
    },
    Image: container.imageId,
    ResolvConfPath: hasRun ? files.resolvConf : '',
    HostnamePath: hasRun ? files.hostname : '',
    HostsPath: hasRun ? files.hosts : '',
    LogPath: hasRun ? container.logPath : '',
    Name: `/${name}`,
    RestartCount: container.restartCount,
    Driver: 'overlay2',
    Platform: 'linux',
    MountLabel: '',
    ProcessLabel: '',
    AppArmorProfile: '',
    ExecIDs: around.execIds.length === 0 ? null : [...around.execIds],
    HostConfig: { ...hostConfig, Links: around.links },
    GraphDriver: { Data: around.graphDriver, Name: 'overlay2' },
    Mounts: container.mounts.map(presentMount),
    Config: config,
    NetworkSettings: networkSettings(container, around),
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

function statusText({ state }: Container, now: Temporal.Instant): string {
  const since = (then: Temporal.Instant): string => humanDuration(then.until(now).total('seconds'));
  switch (state.status) {
    case 'created':
      return 'Created';
    case 'running':
    case 'stopping':
      return `Up ${since(state.startedAt)}`;
    case 'paused':
      return `Up ${since(state.startedAt)} (Paused)`;
    case 'restarting':
      return `Restarting (${state.exitCode}) ${since(state.finishedAt)} ago`;
    case 'exited':
      return `Exited (${state.exitCode}) ${since(state.finishedAt)} ago`;
    case 'starting':
      return statusText({ state: state.from } as Container, now);
    case 'removing':
      return 'Removal In Progress';
  }
}

function presentMount({ type, name, source, destination, mode, writable, propagation }: MountPoint): Mount {
  return {
    Type: type,
    ...(type === 'volume' && { Name: name ?? '', Driver: 'local' }),
    Source: source,
    Destination: destination,
    Mode: mode,
    RW: writable,
    Propagation: propagation,
  };
}

function summaryPorts({ config, state }: Container, attachment: Attachment | undefined): Summary['Ports'] {
  if (!isAlive(state)) return [];
  const published = attachment?.ports ?? [];
  const shown = published.map(({ containerPort, hostPort, hostIp, protocol }) => ({
    IP: hostIp === '' ? '0.0.0.0' : hostIp,
    PrivatePort: containerPort,
    PublicPort: hostPort,
    Type: protocol as string,
  }));
  const hidden = Object.keys(config.ExposedPorts ?? {})
    .map((key) => key.split('/') as [string, string])
    .filter(([port, type]) => !published.some((one) => one.containerPort === Number(port) && one.protocol === type))
    .map(([port, type]) => ({ PrivatePort: Number(port), Type: type }));
  return [...shown, ...hidden].toSorted((a, b) => a.PrivatePort - b.PrivatePort);
}

function portMap(
  { config, state }: Container,
  attachment: Attachment | undefined,
): Inspect['NetworkSettings']['Ports'] {
  const map: Inspect['NetworkSettings']['Ports'] = {};
  if (!isAlive(state)) return map;
  for (const key of Object.keys(config.ExposedPorts ?? {})) map[key] = null;
  for (const { containerPort, hostPort, hostIp, protocol } of attachment?.ports ?? []) {
    const key = `${containerPort}/${protocol}`;
    map[key] = [...(map[key] ?? []), { HostIp: hostIp === '' ? '0.0.0.0' : hostIp, HostPort: String(hostPort) }];
  }
  return map;
}

/** The network that the mode names; one that shares another container's network has none of its own. */
export function networkNameOf({ hostConfig }: Container): string | undefined {
  const { NetworkMode } = hostConfig;
  if (NetworkMode.startsWith('container:')) return undefined;
  return NetworkMode === 'default' ? 'bridge' : NetworkMode;
}

function networksOf(container: Container, around: Around): Record<string, Endpoint> {
  const name = networkNameOf(container);
  return name === undefined ? {} : { [name]: endpointOf(around) };
}

function endpointOf({ attachment, networkId }: Around): Endpoint {
  return {
    IPAMConfig: null,
    Links: null,
    Aliases: null,
    NetworkID: networkId,
    EndpointID: attachment?.endpointId ?? '',
    Gateway: attachment?.gateway ?? '',
    IPAddress: attachment?.ipAddress ?? '',
    IPPrefixLen: attachment?.prefixLength ?? 0,
    IPv6Gateway: '',
    GlobalIPv6Address: '',
    GlobalIPv6PrefixLen: 0,
    MacAddress: attachment?.macAddress ?? '',
    DriverOpts: null,
  };
}

function networkSettings(container: Container, around: Around): Inspect['NetworkSettings'] {
  const { attachment } = around;
  const onBridge = networkNameOf(container) === 'bridge' ? attachment : undefined;
  return {
    Bridge: '',
    SandboxID: attachment?.sandboxId ?? '',
    HairpinMode: false,
    LinkLocalIPv6Address: '',
    LinkLocalIPv6PrefixLen: 0,
    Ports: portMap(container, attachment),
    SandboxKey: isAlive(container.state) && attachment !== undefined ? `/proc/${container.state.pid}/ns/net` : '',
    SecondaryIPAddresses: null,
    SecondaryIPv6Addresses: null,
    EndpointID: onBridge?.endpointId ?? '',
    Gateway: onBridge?.gateway ?? '',
    GlobalIPv6Address: '',
    GlobalIPv6PrefixLen: 0,
    IPAddress: onBridge?.ipAddress ?? '',
    IPPrefixLen: onBridge?.prefixLength ?? 0,
    IPv6Gateway: '',
    MacAddress: onBridge?.macAddress ?? '',
    Networks: networksOf(container, around),
  };
}
