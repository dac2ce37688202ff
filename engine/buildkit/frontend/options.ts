import type { GivenArgs } from '../../builder/build-args.ts';
import type { BuildOptions } from '../../builder/options.ts';
import { MAX_PLATFORMS, refuseAbove } from '../../buildfile/limits.ts';
import { HOST_PLATFORM, parsePlatform, platformText, type Platform } from '../../images/configuration/platform.ts';
import { EngineError } from '../../lib/errors.ts';
import type { Session } from '../session/session.ts';
import { agentsOf } from '../session/ssh.ts';
import { credentialsOf } from './credentials.ts';

type Attributes = ReadonlyMap<string, string>;
type Ulimit = Readonly<{ Name: string; Soft: number; Hard: number }>;

/** The options of the frontend `dockerfile.v0` as those of the builder. Throws `invalid`. */
export function optionsOf(attributes: Attributes, session: Session, signal: AbortSignal): BuildOptions {
  const { uncached, usesCache } = cacheUse(attributes.get('no-cache'));
  const [platform] = platformsOf(attributes);
  return {
    names: [],
    file: attributes.get('filename') ?? '',
    remote: '',
    isQuiet: false,
    usesCache,
    uncachedStages: uncached,
    pulls: attributes.get('image-resolve-mode') === 'pull',
    removes: true,
    removesAlways: true,
    automaticArgs: platformArgs(platform),
    args: prefixed(attributes, 'build-arg:') satisfies GivenArgs,
    labels: prefixed(attributes, 'label:'),
    target: attributes.get('target') ?? '',
    platform,
    cacheFrom: [],
    hostConfig: {
      LogConfig: { Type: 'none', Config: {} },
      Memory: numberOf(attributes, 'memory'),
      MemorySwap: numberOf(attributes, 'memswap'),
      CpuShares: numberOf(attributes, 'cpushares'),
      CpuPeriod: numberOf(attributes, 'cpuperiod'),
      CpuQuota: numberOf(attributes, 'cpuquota'),
      ...textOf(attributes, 'cpusetcpus', 'CpusetCpus'),
      ...textOf(attributes, 'cpusetmems', 'CpusetMems'),
      ...textOf(attributes, 'cgroup-parent', 'CgroupParent'),
      ...networkOf(attributes.get('force-network-mode')),
      ...(attributes.has('shm-size') && { ShmSize: numberOf(attributes, 'shm-size') }),
      ...(attributes.has('add-hosts') && { ExtraHosts: hostsOf(attributes.get('add-hosts')!) }),
      ...(attributes.has('ulimit') && { Ulimits: attributes.get('ulimit')!.split(',').filter(Boolean).map(ulimitOf) }),
    },
    credentials: credentialsOf(session, signal),
    agents: agentsOf(session, signal),
    secrets: { get: async (id) => await session.secret(id, signal) },
  };
}

/** `no-cache` is there without a value for all stages, or has their names. */
function cacheUse(value: string | undefined): { usesCache: boolean; uncached: ReadonlySet<string> } {
  return { usesCache: value !== '', uncached: new Set((value ?? '').toLowerCase().split(',').filter(Boolean)) };
}

/** The platforms that the client names; one that is undefined if it names none. Throws `invalid`. */
export function platformsOf(attributes: Attributes): readonly (Platform | undefined)[] {
  const texts = (attributes.get('platform') ?? '').split(',');
  refuseAbove(MAX_PLATFORMS, texts.length, 'the build', 'platforms');
  const platforms = new Map(texts.map((text) => parsePlatform(text)).map((each) => [each && platformText(each), each]));
  return [...platforms.values()];
}

export function platformArgs(target: Platform | undefined): Record<string, string> {
  return { ...argsOf('BUILD', HOST_PLATFORM), ...argsOf('TARGET', target ?? HOST_PLATFORM) };
}

function argsOf(prefix: string, { os, architecture, variant }: Platform): Record<string, string> {
  return {
    [`${prefix}PLATFORM`]: [os, architecture, variant].filter(Boolean).join('/'),
    [`${prefix}OS`]: os,
    [`${prefix}ARCH`]: architecture,
    [`${prefix}VARIANT`]: variant,
  };
}

function prefixed(attributes: Attributes, prefix: string): Record<string, string> {
  const found = [...attributes].filter(([key]) => key.startsWith(prefix));
  return Object.fromEntries(found.map(([key, value]) => [key.slice(prefix.length), value]));
}

function numberOf(attributes: Attributes, key: string): number {
  const value = attributes.get(key) ?? '';
  if (value === '') return 0;
  if (!/^-?\d{1,15}$/.test(value)) throw new EngineError('invalid', `invalid ${key} value: ${JSON.stringify(value)}`);
  return Number(value);
}

function textOf(attributes: Attributes, key: string, name: string): Record<string, string> {
  const value = attributes.get(key) ?? '';
  return value === '' ? {} : { [name]: value };
}

function networkOf(mode = ''): { NetworkMode?: string } {
  if (mode === '' || mode === 'sandbox' || mode === 'default') return {};
  if (mode === 'host' || mode === 'none') return { NetworkMode: mode };
  throw new EngineError('invalid', `invalid network mode ${JSON.stringify(mode)}: default, none or host`);
}

/** `name=address`, in a list. */
function hostsOf(list: string): string[] {
  return list
    .split(',')
    .filter(Boolean)
    .map((each) => each.replace('=', ':'));
}

/** `nofile=1024:2048`. */
function ulimitOf(text: string): Ulimit {
  const [, Name = '', soft = '', hard = soft] = /^(\w+)=(-?\d+)(?::(-?\d+))?$/.exec(text) ?? [];
  if (Name === '') throw new EngineError('invalid', `invalid ulimit argument: ${text}`);
  return { Name, Soft: Number(soft), Hard: Number(hard) };
}
