import type { Inspect } from '@gantry/client/containers.ts';

/** The settings of an image that a container has without asking. */
export type ImageConfig = Readonly<{
  Env?: readonly string[] | null;
  Cmd?: readonly string[] | null;
  Entrypoint?: readonly string[] | null;
  WorkingDir?: string;
  User?: string;
  Labels?: Readonly<Record<string, string>> | null;
  Volumes?: Readonly<Record<string, object>> | null;
  Healthcheck?: Healthcheck;
  StopSignal?: string;
}>;

type Healthcheck = NonNullable<Inspect['Config']['Healthcheck']>;

const NANOSECONDS_PER_MS = 1e6;
const CHECK_TIMES = [
  ['Interval', '--health-interval'],
  ['Timeout', '--health-timeout'],
  ['StartPeriod', '--health-start-period'],
  ['StartInterval', '--health-start-interval'],
] as const;

/** The words of the `docker run` that would make this container again, as one line for a shell. */
export function runCommand(container: Inspect, image: ImageConfig = {}): string {
  const { Config, HostConfig, Name } = container;
  const words = ['docker', 'run', ...modeFlags(container), '--name', Name.replace(/^\//, '')];
  const flag = (name: string, values: readonly string[]): void => {
    for (const value of values) words.push(name, value);
  };
  flag(
    '--env',
    Config.Env.filter((one) => !(image.Env ?? []).includes(one)),
  );
  flag('--volume', HostConfig.Binds ?? []);
  flag('--mount', (HostConfig.Mounts ?? []).map(mountText));
  flag(
    '--tmpfs',
    Object.entries(HostConfig.Tmpfs ?? {}).map(([path, options]) => joined(path, options)),
  );
  flag('--publish', publishedPorts(HostConfig.PortBindings));
  flag('--label', ownLabels(Config.Labels, image.Labels ?? {}));
  words.push(
    ...lifeFlags(container, image),
    ...limitFlags(HostConfig),
    ...rightFlags(HostConfig),
    ...placeFlags(container, image),
  );
  const entrypoint = Config.Entrypoint ?? [];
  const isOwnEntrypoint = !isEqual(entrypoint, image.Entrypoint ?? []);
  if (isOwnEntrypoint) words.push('--entrypoint', entrypoint[0] ?? '');
  words.push(Config.Image);
  if (isOwnEntrypoint) words.push(...entrypoint.slice(1), ...(Config.Cmd ?? []));
  else if (!isEqual(Config.Cmd ?? [], image.Cmd ?? [])) words.push(...(Config.Cmd ?? []));
  return words.map(quoted).join(' ');
}

function modeFlags({ Config, HostConfig }: Inspect): string[] {
  return [
    '--detach',
    ...(Config.OpenStdin ? ['--interactive'] : []),
    ...(Config.Tty ? ['--tty'] : []),
    ...(HostConfig.AutoRemove ? ['--rm'] : []),
    ...(HostConfig.Init === true ? ['--init'] : []),
    ...restartFlags(HostConfig.RestartPolicy),
  ];
}

/** The health check where it is not the image's, and the end where it is not usual. */
function lifeFlags({ Config }: Inspect, image: ImageConfig): string[] {
  const { Healthcheck: check, StopSignal: signal, StopTimeout: seconds } = Config;
  return [
    ...(check === undefined || isSameCheck(check, image.Healthcheck ?? {}) ? [] : healthFlags(check)),
    ...(signal === undefined || signal === '' || signal === image.StopSignal ? [] : ['--stop-signal', signal]),
    ...(seconds === undefined ? [] : ['--stop-timeout', String(seconds)]),
  ];
}

function healthFlags(check: Healthcheck): string[] {
  const [kind, ...words] = check.Test ?? [];
  if (kind === 'NONE') return ['--no-healthcheck'];
  const command = kind === 'CMD' ? words.map(quoted).join(' ') : words.join(' ');
  const times = CHECK_TIMES.flatMap(([field, name]) =>
    (check[field] ?? 0) > 0 ? [name, `${check[field]! / NANOSECONDS_PER_MS}ms`] : [],
  );
  return [
    ...(command === '' ? [] : ['--health-cmd', command]),
    ...times,
    ...((check.Retries ?? 0) > 0 ? ['--health-retries', String(check.Retries)] : []),
  ];
}

function isSameCheck(one: Healthcheck, other: Healthcheck): boolean {
  const isSameNumber = (field: keyof Healthcheck): boolean => (one[field] ?? 0) === (other[field] ?? 0);
  return (
    isEqual(one.Test ?? [], other.Test ?? []) &&
    CHECK_TIMES.every(([field]) => isSameNumber(field)) &&
    isSameNumber('Retries')
  );
}

function restartFlags({ Name, MaximumRetryCount: retries }: Inspect['HostConfig']['RestartPolicy']): string[] {
  if (Name === '' || Name === 'no') return [];
  return ['--restart', Name === 'on-failure' && retries > 0 ? `${Name}:${retries}` : Name];
}

function limitFlags(host: Inspect['HostConfig']): string[] {
  return [
    ...(host.Memory > 0 ? ['--memory', String(host.Memory)] : []),
    ...((host.NanoCpus ?? 0) > 0 ? ['--cpus', String(host.NanoCpus! / 1e9)] : []),
    ...(host.CpuShares > 0 ? ['--cpu-shares', String(host.CpuShares)] : []),
    ...(host.CpusetCpus === '' ? [] : ['--cpuset-cpus', host.CpusetCpus]),
    ...((host.PidsLimit ?? 0) > 0 ? ['--pids-limit', String(host.PidsLimit)] : []),
    ...(host.Ulimits ?? []).flatMap(({ Name, Soft, Hard }) => ['--ulimit', `${Name}=${Soft}:${Hard}`]),
  ];
}

function rightFlags(host: Inspect['HostConfig']): string[] {
  return [
    ...(host.Privileged ? ['--privileged'] : []),
    ...(host.ReadonlyRootfs ? ['--read-only'] : []),
    ...repeated('--cap-add', host.CapAdd),
    ...repeated('--cap-drop', host.CapDrop),
    ...repeated('--security-opt', host.SecurityOpt),
    ...(host.Devices ?? []).flatMap(({ PathOnHost, PathInContainer, CgroupPermissions }) => [
      '--device',
      `${PathOnHost}:${PathInContainer}:${CgroupPermissions}`,
    ]),
    ...repeated('--dns', host.Dns),
    ...repeated('--add-host', host.ExtraHosts),
    ...repeated('--volumes-from', host.VolumesFrom),
    ...(host.PidMode === '' ? [] : ['--pid', host.PidMode]),
  ];
}

function placeFlags({ Id, Config, HostConfig }: Inspect, image: ImageConfig): string[] {
  const network = HostConfig.NetworkMode;
  const isUsual = network === 'default' || network === 'bridge' || network === '';
  return [
    ...(isUsual ? [] : ['--network', network]),
    ...(Config.Hostname === '' || Id.startsWith(Config.Hostname) || network === 'host'
      ? []
      : ['--hostname', Config.Hostname]),
    ...(Config.User === (image.User ?? '') ? [] : ['--user', Config.User]),
    ...(Config.WorkingDir === (image.WorkingDir ?? '') ? [] : ['--workdir', Config.WorkingDir]),
  ];
}

function publishedPorts(bindings: Inspect['HostConfig']['PortBindings']): string[] {
  return Object.entries(bindings).flatMap(([port, hosts]) =>
    (hosts ?? []).map(({ HostIp, HostPort }) => {
      const address = HostIp.includes(':') ? `[${HostIp}]:` : HostIp === '' ? '' : `${HostIp}:`;
      return `${address}${HostPort}:${port.replace(/\/tcp$/, '')}`;
    }),
  );
}

function ownLabels(labels: Readonly<Record<string, string>>, ofImage: Readonly<Record<string, string>>): string[] {
  const isOfImage = (key: string, value: string): boolean => Object.hasOwn(ofImage, key) && ofImage[key] === value;
  return Object.entries(labels).flatMap(([key, value]) => (isOfImage(key, value) ? [] : [`${key}=${value}`]));
}

function mountText(mount: NonNullable<Inspect['HostConfig']['Mounts']>[number]): string {
  const { Type, Source, Target, ReadOnly } = mount;
  const source = Source === undefined || Source === '' ? [] : [`source=${Source}`];
  return [`type=${Type}`, ...source, `target=${Target}`, ...(ReadOnly === true ? ['readonly'] : [])].join(',');
}

function joined(path: string, options: string): string {
  return options === '' ? path : `${path}:${options}`;
}

function isEqual(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((word, index) => word === other[index]);
}

/** A word that a shell reads unchanged. */
function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

function repeated(name: string, values: readonly string[] | null): string[] {
  return (values ?? []).flatMap((value) => [name, value]);
}
