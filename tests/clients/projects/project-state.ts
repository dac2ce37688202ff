import { normalised, type Side } from '../both-engines.ts';

type Volume = { Name: string; Driver: string; Labels: Record<string, string> | null; Options: object | null };
type Inspect = {
  Name: string;
  State: { Status: string; Error: string; Health?: object };
  Config: { Labels: Record<string, string> | null };
  HostConfig: { NetworkMode: string; SecurityOpt: string[] | null };
  Mounts: { Destination: string; Source: string }[];
  NetworkSettings: {
    Ports: Record<string, { HostIp: string; HostPort: string }[] | null>;
    Networks: Record<string, { Aliases: string[] | null }>;
  };
};

/** A list that comes of a map. */
const DEPENDENCIES = 'com.docker.compose.depends_on';

export type ProjectState = Readonly<{ ids: string; containers: object; networks: object; volumes: readonly string[] }>;

/** Everything that a project leaves on an engine, by names. */
export async function projectState(side: Side): Promise<ProjectState> {
  const { body: list } = await side.api.get<{ Id: string }[]>('/containers/json?all=1');
  const inspects = await Promise.all(list.map(async ({ Id }) => (await side.api.get(`/containers/${Id}/json`)).body));
  const { body: networks } = await side.api.get<{ Id: string; Name: string }[]>('/networks');
  const { body: volumes } = await side.api.get<{ Volumes: Volume[] | null }>('/volumes');
  const names = new Map(networks.map(({ Id, Name }) => [Id, Name]));
  return {
    ids: list
      .map(({ Id }) => Id)
      .toSorted()
      .join(),
    containers: Object.fromEntries(inspects.map((inspect) => containerState(side, names, inspect as Inspect))),
    networks: Object.fromEntries(
      networks
        .filter(({ Name }) => Name !== 'bridge')
        .map((network) => [network.Name, { ...network, Containers: '', IPAM: '' }]),
    ),
    volumes: (volumes.Volumes ?? []).map((volume) => normalised(side, volumeText(volume))).toSorted(),
  };
}

function volumeText({ Name, Driver, Labels, Options }: Volume): string {
  const labels = Object.entries(Labels ?? {}).map((pair) => pair.join('='));
  return [Name, Driver, ...labels.toSorted(), JSON.stringify(Options)].join(' ');
}

/** An inspect by its name, without addresses, ids and the order of maps. */
function containerState(
  side: Side,
  names: ReadonlyMap<string, string>,
  { Name, State, Config, HostConfig, Mounts, NetworkSettings }: Inspect,
): [string, unknown] {
  const ports = Object.entries(NetworkSettings.Ports).map(([port, bindings]) => {
    // dockerd lists a port a second time, for IPv6.
    const own = bindings
      ?.filter(({ HostIp }) => HostIp !== '::')
      .map(({ HostIp, HostPort }) => [HostIp, fixed(HostPort)]);
    return [port, own ?? null];
  });
  const networks = Object.entries(NetworkSettings.Networks).map(([network, { Aliases }]) => [
    network,
    Aliases?.map((alias) => normalised(side, alias)).toSorted() ?? null,
  ]);
  const dependencies = Config.Labels?.[DEPENDENCIES];
  const state = {
    State: [State.Status, State.Error, State.Health !== undefined],
    Config: { ...Config, Labels: { ...Config.Labels, [DEPENDENCIES]: dependencies?.split(',').toSorted() } },
    // There is no SELinux to disable.
    HostConfig: {
      ...HostConfig,
      // Ours is always the name.
      NetworkMode: names.get(HostConfig.NetworkMode) ?? HostConfig.NetworkMode,
      SecurityOpt: HostConfig.SecurityOpt?.filter((option) => option !== 'label=disable') ?? [],
    },
    mounts: Object.fromEntries(Mounts.map((mount) => [mount.Destination, { ...mount, Source: placeOf(mount.Source) }])),
    ports: Object.fromEntries(ports),
    networks: Object.fromEntries(networks),
  };
  return [Name, JSON.parse(normalised(side, JSON.stringify(state)))];
}

/** A port that the kernel has chosen is as good as another. */
function fixed(port: string): string {
  return Number(port) >= 32_768 ? 'chosen' : port;
}

/** A volume's folder is elsewhere on each engine. */
function placeOf(source: string): string {
  return source.replace(/^.*\/volumes\//, 'volumes/');
}
