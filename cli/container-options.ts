import { resolve } from 'node:path';

import type { CreateBody } from '@gantry/client/containers.ts';

import { EXIT, Exit } from './exit-codes.ts';

/** The flags of `run` as commander hands them over. */
export type RunFlags = {
  detach?: boolean;
  interactive?: boolean;
  tty?: boolean;
  publish: string[];
  volume: string[];
  env: string[];
  label: string[];
  name?: string;
  rm?: boolean;
  network?: string;
  memory?: string;
  cpus?: string;
  user?: string;
  workdir?: string;
  entrypoint?: string;
  hostname?: string;
  readOnly?: boolean;
  privileged?: boolean;
  restart?: string;
  detachKeys?: string;
};

/** Translates flags, image and command into the specification's create body. Throws `Exit` for what cannot be read. */
export function createBodyOf(flags: RunFlags, image: string, command: readonly string[]): CreateBody {
  const attached = flags.detach !== true;
  const ports = flags.publish.map(parsePort);
  return {
    Image: image,
    ...(command.length > 0 && { Cmd: [...command] }),
    ...(flags.entrypoint !== undefined && { Entrypoint: [flags.entrypoint] }),
    Hostname: flags.hostname ?? '',
    User: flags.user ?? '',
    WorkingDir: flags.workdir ?? '',
    Tty: flags.tty ?? false,
    OpenStdin: flags.interactive ?? false,
    StdinOnce: (flags.interactive ?? false) && attached,
    AttachStdin: (flags.interactive ?? false) && attached,
    AttachStdout: attached,
    AttachStderr: attached,
    Env: flags.env.map(withValue),
    Labels: Object.fromEntries(flags.label.map((label) => splitOnce(label, '='))),
    ExposedPorts: Object.fromEntries(ports.map(({ container }) => [container, {}])),
    HostConfig: {
      Binds: flags.volume.map(absoluteBind),
      PortBindings: portBindings(ports),
      NetworkMode: flags.network ?? 'default',
      ...(flags.memory !== undefined && { Memory: parseBytes(flags.memory) }),
      ...(flags.cpus !== undefined && cpuQuota(flags.cpus)),
      ReadonlyRootfs: flags.readOnly ?? false,
      Privileged: flags.privileged ?? false,
      RestartPolicy: restartPolicy(flags.restart ?? 'no'),
    },
  };
}

type Port = { container: string; hostIp: string; hostPort: string };

/** `[[ip:]hostPort:]containerPort[/protocol]`; an empty host port is an ephemeral one. */
export function parsePort(text: string): Port {
  const match = /^(?:(?:(\[[^\]]+\]|[\d.]+):)?(\d*(?:-\d+)?):)?(\d+)(?:\/(tcp|udp))?$/.exec(text);
  if (match === null)
    throw new Exit(EXIT.usage, `invalid port "${text}": expected [[ip:]host-port:]container-port[/tcp|/udp]`);
  const [, ip = '', host = '', container, protocol = 'tcp'] = match;
  return { container: `${container}/${protocol}`, hostIp: ip.replace(/^\[(.*)\]$/, '$1'), hostPort: host };
}

/** Bytes of `512m`, `1.5g`, `100k`, `4096b` or `4096`. */
export function parseBytes(text: string): number {
  const match = /^(\d+(?:\.\d+)?)\s*([bkmgt]?)(?:i?b)?$/i.exec(text.trim());
  if (match === null)
    throw new Exit(EXIT.usage, `invalid size "${text}": expected a number with an optional unit b, k, m, g`);
  const power = ['', 'k', 'm', 'g', 't'].indexOf(match[2]!.toLowerCase().replace('b', ''));
  return Math.floor(Number(match[1]) * 1024 ** power);
}

function portBindings(ports: readonly Port[]): Record<string, { HostIp: string; HostPort: string }[]> {
  const bindings: Record<string, { HostIp: string; HostPort: string }[]> = {};
  for (const { container, hostIp, hostPort } of ports) {
    (bindings[container] ??= []).push({ HostIp: hostIp, HostPort: hostPort });
  }
  return bindings;
}

function cpuQuota(text: string): { CpuPeriod: number; CpuQuota: number } {
  const cpus = Number(text);
  if (!(cpus > 0)) throw new Exit(EXIT.usage, `invalid number of CPUs "${text}"`);
  return { CpuPeriod: 100_000, CpuQuota: Math.round(cpus * 100_000) };
}

function restartPolicy(text: string): { Name: string; MaximumRetryCount: number } {
  const [name, count] = splitOnce(text, ':');
  return { Name: name === 'no' ? '' : name, MaximumRetryCount: Number(count) };
}

/** A variable without a value takes the caller's, as in docker. */
function withValue(variable: string): string {
  if (variable.includes('=')) return variable;
  const value = process.env[variable];
  return value === undefined ? variable : `${variable}=${value}`;
}

function absoluteBind(bind: string): string {
  return bind.startsWith('.') ? bind.replace(/^[^:]*/, (path) => resolve(path)) : bind;
}

function splitOnce(text: string, separator: string): [string, string] {
  const at = text.indexOf(separator);
  return at < 0 ? [text, ''] : [text.slice(0, at), text.slice(at + 1)];
}
