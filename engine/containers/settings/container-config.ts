import { posix } from 'node:path';

import type { ImageConfig } from '../../images/configuration/image-config.ts';
import { EngineError } from '../../lib/errors.ts';
import { shortId } from '../../lib/ids.ts';
import { signalNumber } from '../../lib/notations/signal-number.ts';
import { sharedWith } from '../../lib/shared-namespace.ts';
import type { Healthcheck } from '../../records/healthcheck.ts';
import { refuseManyLabels } from '../../records/labels.ts';
import type { ContainerConfig, ContainerConfigBody } from './container-config-schema.ts';
import { checkedDestination } from './mounts/mount-points.ts';
import { portKey } from './port-bindings.ts';

const LEAST_NS = 1_000_000;
/** RFC 1123, and the underscores of many compose files. */
const HOSTNAME = /^(?=.{1,253}$)(\w([\w-]{0,61}\w)?)(\.\w([\w-]{0,61}\w)?)*$/;

/** The body's settings over the image's, checked. Throws `invalid`. */
export function completeConfig(
  id: string,
  body: ContainerConfigBody,
  image: ImageConfig,
  hostname: string,
): ContainerConfig {
  refuseManyLabels(body.Labels, 'the container');
  const entrypoint = entrypointOf(body.Entrypoint);
  const command = words(body.Cmd);
  // A new entrypoint removes the image's command, as in docker.
  const inherited = entrypoint === undefined ? image.Cmd : [];
  const config: ContainerConfig = {
    Hostname: body.Hostname || hostname || shortId(id),
    Domainname: body.Domainname ?? '',
    User: body.User || image.User,
    AttachStdin: body.AttachStdin ?? false,
    AttachStdout: body.AttachStdout ?? false,
    AttachStderr: body.AttachStderr ?? false,
    ...exposedPorts(body, image),
    Tty: body.Tty ?? false,
    OpenStdin: body.OpenStdin ?? false,
    StdinOnce: body.StdinOnce ?? false,
    Env: mergedEnvironment(image.Env, body.Env ?? []),
    Cmd: nullIfEmpty(command === undefined || command.length === 0 ? [...inherited] : command),
    Image: body.Image ?? '',
    Volumes: volumesOf(body, image),
    WorkingDir: workingDirectory(body.WorkingDir || image.WorkingDir),
    Entrypoint: nullIfEmpty(entrypoint ?? [...image.Entrypoint]),
    OnBuild: body.OnBuild ?? null,
    Labels: { ...image.Labels, ...stringMap(body.Labels ?? {}) },
    ...(body.NetworkDisabled === true && { NetworkDisabled: true }),
    ...(body.MacAddress !== undefined && { MacAddress: body.MacAddress }),
    ...stopSignalOf(body, image),
    ...(body.StopTimeout !== undefined && { StopTimeout: body.StopTimeout }),
    ...healthcheckOf(body.Healthcheck, image.Healthcheck),
  };
  refuseManyLabels(config.Labels, 'the container');
  if (!HOSTNAME.test(config.Hostname)) throw new EngineError('invalid', `invalid hostname format: ${config.Hostname}`);
  if (config.MacAddress && !/^([0-9a-f]{2}:){5}[0-9a-f]{2}$/i.test(config.MacAddress)) {
    throw new EngineError('invalid', `${config.MacAddress} is not a valid mac address`);
  }
  const bad = config.Env.find((variable) => variable === '' || variable.startsWith('='));
  if (bad !== undefined) throw new EngineError('invalid', `invalid environment variable: ${bad}`);
  return config;
}

/** Throws `invalid` for settings that contradict the namespaces that the container shares. */
export function checkAgainstModes(body: ContainerConfigBody, networkMode: string, utsMode: string): void {
  if (utsMode === 'host' && body.Hostname) refuseBoth('hostname', 'UTS');
  const isShared = sharedWith(networkMode) !== undefined;
  if (body.MacAddress && (isShared || networkMode === 'host')) refuseBoth('mac-address', 'network');
  if (!isShared) return;
  if (body.Hostname) refuseBoth('hostname', 'network');
  if (Object.keys(body.ExposedPorts ?? {}).length > 0) refuseBoth('port exposing', 'container type network');
}

function refuseBoth(option: string, mode: string): never {
  throw new EngineError('invalid', `conflicting options: ${option} and the ${mode} mode`);
}

/** The words to execute: entrypoint, then command. Throws `invalid` without any. */
export function commandOf({ Entrypoint, Cmd }: ContainerConfig): { path: string; args: string[] } {
  const [path, ...args] = [...(Entrypoint ?? []), ...(Cmd ?? [])];
  if (path === undefined) throw new EngineError('invalid', 'No command specified');
  return { path, args };
}

function words(written: string | readonly string[] | undefined): string[] | undefined {
  if (written === undefined) return undefined;
  if (typeof written === 'string') return written === '' ? [] : [written];
  return [...written];
}

/** One empty word removes the image's entrypoint. */
function entrypointOf(written: string | readonly string[] | undefined): string[] | undefined {
  const list = words(written);
  return list?.length === 1 && list[0] === '' ? [] : list;
}

function nullIfEmpty(list: string[]): string[] | null {
  return list.length === 0 ? null : list;
}

function exposedPorts(body: ContainerConfigBody, image: ImageConfig): { ExposedPorts?: Record<string, object> } {
  const ports = [...Object.keys(image.ExposedPorts), ...Object.keys(body.ExposedPorts ?? {})].map(portKey);
  return ports.length === 0 ? {} : { ExposedPorts: Object.fromEntries(ports.map((port) => [port, {}])) };
}

function volumesOf(body: ContainerConfigBody, image: ImageConfig): Record<string, object> | null {
  const paths = [...Object.keys(image.Volumes), ...Object.keys(body.Volumes ?? {})];
  for (const path of paths) {
    checkedDestination(path, (what) => `invalid volume specification: '${path}': ${what}`);
  }
  return paths.length === 0 ? null : Object.fromEntries(paths.map((path) => [path, {}]));
}

function mergedEnvironment(image: readonly string[], body: readonly string[]): string[] {
  const own = new Set(body.map(nameOf));
  return [...body, ...image.filter((variable) => !own.has(nameOf(variable)))];
}

function nameOf(variable: string): string {
  return variable.split('=', 1)[0]!;
}

function workingDirectory(path: string): string {
  if (path !== '' && !path.startsWith('/')) {
    throw new EngineError('invalid', `the working directory '${path}' is invalid, it needs to be an absolute path`);
  }
  return path === '' ? '' : posix.resolve(path); // cleaned, as dockerd shows it
}

function stringMap(labels: Readonly<Record<string, string | null>>): Record<string, string> {
  return Object.fromEntries(Object.entries(labels).map(([key, value]) => [key, value ?? '']));
}

function stopSignalOf(body: ContainerConfigBody, image: ImageConfig): { StopSignal?: string } {
  const own = body.StopSignal === undefined ? '' : String(body.StopSignal);
  if (own !== '') signalNumber(own); // an image's may be wrong
  const written = own === '' ? image.StopSignal : own;
  return written === '' ? {} : { StopSignal: written };
}

function healthcheckOf(body: Healthcheck | undefined, image: Healthcheck | undefined): { Healthcheck?: Healthcheck } {
  const check = { ...image, ...definedOnly(body ?? {}) };
  for (const name of ['Interval', 'Timeout', 'StartPeriod', 'StartInterval'] as const) {
    const value = check[name] ?? 0;
    if (value !== 0 && value < LEAST_NS)
      throw new EngineError('invalid', `${name} in Healthcheck cannot be less than 1ms`);
  }
  if ((check.Retries ?? 0) < 0) throw new EngineError('invalid', 'Retries in Healthcheck cannot be negative');
  return body === undefined && image === undefined ? {} : { Healthcheck: definedOnly(check) };
}

/** 0 and an empty test inherit. */
function definedOnly(check: Healthcheck): Healthcheck {
  return Object.fromEntries(
    Object.entries(check).filter(([, value]) => (Array.isArray(value) ? value.length > 0 : value !== 0)),
  );
}
