import { MAX_ARGUMENTS_LENGTH, MAX_CACHE_SOURCES, MAX_NAMES, refuseAbove } from '../buildfile/limits.ts';
import type { HostConfigBody } from '../containers/settings/host-config/host-config-schema.ts';
import { parsePlatform, type Platform } from '../images/configuration/platform.ts';
import {
  familiarReference,
  parseReference,
  refuseAmbiguous,
  withDefaultTag,
  type Reference,
} from '../images/names/reference.ts';
import { EngineError } from '../lib/errors.ts';
import { credentialsIn, type Credentials } from '../registry/auth/credentials.ts';
import type { GivenArgs } from './build-args.ts';
import type { ImportedSteps } from './cache/imported-steps.ts';
import type { BuildQuery } from './schema.ts';
import { secretsIn, type Secrets } from './secrets.ts';
import { NO_AGENTS, type SshAgents } from './steps/ssh-agents.ts';

/** The credentials for a registry, by its name. */
export type CredentialsByHost = Readonly<{
  get: (host: string) => Credentials | undefined | Promise<Credentials | undefined>;
}>;

/** The options of a build, checked. */
export type BuildOptions = Readonly<{
  names: readonly Reference[];
  /** In the context. */
  file: string;
  remote: string;
  isQuiet: boolean;
  usesCache: boolean;
  /** Stages that do not use it either, by their names in lower case. */
  uncachedStages: ReadonlySet<string>;
  /** Images are pulled even if they exist here. */
  pulls: boolean;
  /** The containers of steps are removed after a success; `always`: also after a failure. */
  removes: boolean;
  removesAlways: boolean;
  args: GivenArgs;
  /** Arguments that every file has: of the platform. */
  automaticArgs: Readonly<Record<string, string>>;
  labels: Readonly<Record<string, string>>;
  target: string;
  /** Platform of base images; that of a FROM goes before it. */
  platform: Platform | undefined;
  cacheFrom: readonly string[];
  /** Steps of other machines. */
  imported?: ImportedSteps | undefined;
  /** Settings of each step's container. */
  hostConfig: HostConfigBody;
  /** By the name of the registry. */
  credentials: CredentialsByHost;
  /** For `RUN --mount=type=secret`. */
  secrets: Secrets;
  /** For `RUN --mount=type=ssh`. */
  agents: SshAgents;
}>;

type Headers = Readonly<Record<string, string | string[] | undefined>>;

/** Throws `invalid`. */
export function buildOptions(query: BuildQuery, headers: Headers): BuildOptions {
  const header = (name: string): string | undefined => [headers[name]].flat()[0];
  if (query.securityopt !== undefined) {
    throw new EngineError('invalid', 'The daemon on this platform does not support setting security options on build');
  }
  if (query.squash === true) throw new EngineError('invalid', 'squash is only supported with experimental mode');
  if (query.version === '2')
    throw new EngineError('invalid', 'BuildKit is not supported: build with DOCKER_BUILDKIT=0');
  if (query.version !== undefined && query.version !== '' && query.version !== '1') {
    throw new EngineError('invalid', `invalid version ${JSON.stringify(query.version)}`);
  }
  refuseOutputs(query.outputs);
  return {
    names: namesOf([query.t ?? []].flat()),
    file: query.dockerfile || query.buildfile || '',
    remote: query.remote ?? '',
    isQuiet: query.q ?? false,
    usesCache: query.nocache !== true,
    uncachedStages: new Set(),
    pulls: query.pull ?? false,
    removes: query.forcerm === true || query.rm !== false,
    removesAlways: query.forcerm ?? false,
    automaticArgs: {},
    args: textMap(query.buildargs, 'build args', true),
    labels: textMap(query.labels, 'labels', false) as Readonly<Record<string, string>>,
    target: query.target ?? '',
    platform: parsePlatform(query.platform),
    cacheFrom: listOf(query.cachefrom),
    hostConfig: hostConfigOf(query),
    credentials: credentialsOf(header('x-registry-config')),
    secrets: secretsIn(header('x-build-secrets')),
    agents: NO_AGENTS,
  };
}

/** `[]` and `null` ask for an image. */
function refuseOutputs(text: string | undefined): void {
  const outputs = parsed(text, 'outputs');
  const isImage = outputs === undefined || (Array.isArray(outputs) && outputs.length === 0);
  if (!isImage) throw new EngineError('invalid', 'outputs other than an image need BuildKit, which this engine lacks');
}

function namesOf(written: readonly string[]): Reference[] {
  refuseAbove(MAX_NAMES, written.length, 'the list of tags', 'names');
  const byName = new Map<string, Reference>();
  for (const name of written) {
    if (name === '') continue;
    const reference = withDefaultTag(parseReference(name));
    if (reference.digest !== undefined) throw new EngineError('invalid', 'build tag cannot contain a digest');
    refuseAmbiguous(reference);
    byName.set(familiarReference(reference), reference);
  }
  return [...byName.values()];
}

/** Docker's command line sends `null` for an option without a value. */
function parsed(text: string | undefined, what: string): unknown {
  if (text === undefined || text === '') return undefined;
  try {
    return (JSON.parse(text) as unknown) ?? undefined;
  } catch (error) {
    throw new EngineError('invalid', `error reading ${what}: it is not JSON`, { cause: error });
  }
}

function textMap(text: string | undefined, what: string, takesNull: boolean): GivenArgs {
  const value = parsed(text, what) ?? {};
  const isMap =
    typeof value === 'object' &&
    !Array.isArray(value) &&
    Object.values(value).every((each) => typeof each === 'string' || (takesNull && each === null));
  if (!isMap) throw new EngineError('invalid', `error reading ${what}: it is not a map of strings`);
  refuseAbove(MAX_ARGUMENTS_LENGTH, text?.length ?? 0, `the list of ${what}`, 'characters');
  return value as GivenArgs;
}

function listOf(text: string | undefined): string[] {
  const value = parsed(text, 'cachefrom') ?? [];
  if (!Array.isArray(value) || !value.every((each) => typeof each === 'string'))
    throw new EngineError('invalid', 'error reading cachefrom: it is not a list of strings');
  refuseAbove(MAX_CACHE_SOURCES, value.length, 'the list of cachefrom', 'names');
  return value;
}

function hostConfigOf(query: BuildQuery): HostConfigBody {
  const ulimits = parsed(query.ulimits, 'ulimit settings');
  if (ulimits !== undefined && !Array.isArray(ulimits)) {
    throw new EngineError('invalid', 'error reading ulimit settings: it is not a list');
  }
  return {
    LogConfig: { Type: 'none', Config: {} },
    Memory: query.memory ?? 0,
    MemorySwap: query.memswap ?? 0,
    CpuShares: query.cpushares ?? 0,
    CpuPeriod: query.cpuperiod ?? 0,
    CpuQuota: query.cpuquota ?? 0,
    ...(query.cpusetcpus !== undefined && { CpusetCpus: query.cpusetcpus }),
    ...(query.cpusetmems !== undefined && { CpusetMems: query.cpusetmems }),
    ...(query.cgroupparent !== undefined && { CgroupParent: query.cgroupparent }),
    ...(query.shmsize !== undefined && { ShmSize: query.shmsize }),
    ...(query.networkmode !== undefined && query.networkmode !== '' && { NetworkMode: query.networkmode }),
    ...(query.extrahosts !== undefined && { ExtraHosts: [query.extrahosts].flat() }),
    ...(ulimits !== undefined && { Ulimits: ulimits as HostConfigBody['Ulimits'] }),
  };
}

/** Unreadable credentials count as none, as in dockerd. */
function credentialsOf(header: string | undefined): Map<string, Credentials> {
  if (header === undefined || header === '') return new Map();
  try {
    const value: unknown = JSON.parse(Buffer.from(header, 'base64').toString());
    if (typeof value !== 'object' || value === null) return new Map();
    return new Map(Object.entries(value).map(([name, config]) => [hostOf(name), credentialsIn(config)]));
  } catch (error) {
    if (error instanceof SyntaxError) return new Map();
    throw error;
  }
}

/** `https://index.docker.io/v1/` is docker.io. */
function hostOf(name: string): string {
  const host = name.replace(/^https?:\/\//, '').replace(/\/.*$/, '');
  return host === 'index.docker.io' || host === 'registry-1.docker.io' ? 'docker.io' : host;
}
