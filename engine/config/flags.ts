import { ConfigFile, type ConfigKey } from './schema.ts';

export type Given = Record<string, unknown>;
type Kind = 'text' | 'list' | 'flag' | 'number' | 'map' | 'ulimits' | 'runtimes';
type Flag = { key: ConfigKey; kind: Kind };

/** dockerd's names: a list's flag is in the singular and may be repeated. */
const FLAGS: Readonly<Record<string, Flag>> = {
  host: { key: 'hosts', kind: 'list' },
  'data-root': { key: 'data-root', kind: 'text' },
  'exec-root': { key: 'exec-root', kind: 'text' },
  pidfile: { key: 'pidfile', kind: 'text' },
  group: { key: 'group', kind: 'text' },
  bridge: { key: 'bridge', kind: 'text' },
  bip: { key: 'bip', kind: 'text' },
  ipv6: { key: 'ipv6', kind: 'flag' },
  'fixed-cidr-v6': { key: 'fixed-cidr-v6', kind: 'text' },
  'default-address-pool': { key: 'default-address-pools', kind: 'list' },
  mtu: { key: 'mtu', kind: 'number' },
  tls: { key: 'tls', kind: 'flag' },
  tlsverify: { key: 'tlsverify', kind: 'flag' },
  tlscacert: { key: 'tlscacert', kind: 'text' },
  tlscert: { key: 'tlscert', kind: 'text' },
  tlskey: { key: 'tlskey', kind: 'text' },
  'insecure-tcp': { key: 'insecure-tcp', kind: 'flag' },
  'api-rate-limit': { key: 'api-rate-limit', kind: 'text' },
  'metrics-addr': { key: 'metrics-addr', kind: 'text' },
  page: { key: 'page', kind: 'text' },
  'page-read-only': { key: 'page-read-only', kind: 'flag' },
  'min-api-version': { key: 'min-api-version', kind: 'text' },
  'max-api-version': { key: 'max-api-version', kind: 'text' },
  'default-api-version': { key: 'default-api-version', kind: 'text' },
  'cdi-spec-dir': { key: 'cdi-spec-dirs', kind: 'list' },
  'insecure-registry': { key: 'insecure-registries', kind: 'list' },
  'registry-mirror': { key: 'registry-mirrors', kind: 'list' },
  'search-index': { key: 'search-index', kind: 'text' },
  'registry-certs-dir': { key: 'registry-certs-dir', kind: 'text' },
  'max-concurrent-downloads': { key: 'max-concurrent-downloads', kind: 'number' },
  'max-concurrent-uploads': { key: 'max-concurrent-uploads', kind: 'number' },
  'api-cors-header': { key: 'api-cors-header', kind: 'text' },
  'log-level': { key: 'log-level', kind: 'text' },
  debug: { key: 'debug', kind: 'flag' },
  'log-driver': { key: 'log-driver', kind: 'text' },
  'log-opt': { key: 'log-opts', kind: 'map' },
  dns: { key: 'dns', kind: 'list' },
  'dns-opt': { key: 'dns-opts', kind: 'list' },
  'dns-search': { key: 'dns-search', kind: 'list' },
  'default-ulimit': { key: 'default-ulimits', kind: 'ulimits' },
  'authorization-plugin': { key: 'authorization-plugins', kind: 'list' },
  'plugin-folder': { key: 'plugin-folders', kind: 'list' },
  label: { key: 'labels', kind: 'list' },
  'node-generic-resource': { key: 'node-generic-resources', kind: 'list' },
  runtime: { key: 'runtimes', kind: 'runtimes' },
  'add-runtime': { key: 'runtimes', kind: 'runtimes' },
  'default-runtime': { key: 'default-runtime', kind: 'text' },
  'cgroup-driver': { key: 'cgroup-driver', kind: 'text' },
  'exec-opt': { key: 'exec-opts', kind: 'list' },
  'cgroup-parent': { key: 'cgroup-parent', kind: 'text' },
  'userns-remap': { key: 'userns-remap', kind: 'text' },
  'cpu-rt-period': { key: 'cpu-rt-period', kind: 'number' },
  'cpu-rt-runtime': { key: 'cpu-rt-runtime', kind: 'number' },
  'live-restore': { key: 'live-restore', kind: 'flag' },
  'build-cache-size': { key: 'build-cache-size', kind: 'number' },
  'shutdown-timeout': { key: 'shutdown-timeout', kind: 'number' },
};
const TRUE = /^(1|t|true)$/i;
const FALSE = /^(0|f|false)$/i;
const ULIMIT = /^-?\d+(:-?\d+)?$/;

const SHORT: ReadonlyMap<string, string> = new Map(
  Object.entries({
    H: 'host',
    p: 'pidfile',
    G: 'group',
    b: 'bridge',
    l: 'log-level',
    D: 'debug',
  }),
);

/** How a user writes a key on the command line. */
export function flagsOf(key: ConfigKey): string {
  const name = Object.entries(FLAGS).find(([, flag]) => flag.key === key)?.[0];
  return `flag --${name ?? key}`;
}

/**
 * Reads `--flag value`, `--flag=value` and dockerd's short forms. `problems` lists the flags that could not be read.
 */
export function parseFlags(argv: readonly string[]): {
  given: Given;
  configFile: string | undefined;
  problems: string[];
} {
  const given: Given = {};
  const problems: string[] = [];
  let configFile: string | undefined;
  const rest = [...argv];
  for (let word = rest.shift(); word !== undefined; word = rest.shift()) {
    const { name, written } = splitWord(word);
    const flag = Object.hasOwn(FLAGS, name) ? FLAGS[name]! : undefined;
    if (flag === undefined && name !== 'config-file') {
      problems.push(`unknown flag: ${word}`);
      continue;
    }
    const value = written ?? (flag?.kind === 'flag' ? 'true' : rest.shift());
    if (value === undefined) problems.push(`flag --${name}: a value is missing`);
    else if (flag === undefined) configFile = value;
    else add(given, flag, name, value, problems);
  }
  return { given, configFile, problems };
}

/** `--flag`, `--flag=value`, `-f`, `-f=value`, `-fvalue`. */
function splitWord(word: string): { name: string; written: string | undefined } {
  const long = /^--([a-z][a-z0-9-]*)(?:=(.*))?$/s.exec(word);
  if (long !== null) return { name: long[1]!, written: long[2] };
  const short = /^-([A-Za-z])(?:=?(.+))?$/s.exec(word);
  return { name: SHORT.get(short?.[1] ?? '') ?? '', written: short?.[2] };
}

/** The help text, made of the schema. */
export function usage(): string {
  const properties = ConfigFile.properties as Record<string, { description?: string; default?: unknown }>;
  const lines = Object.entries(FLAGS).map(([name, { key }]) => {
    const short = [...SHORT].find(([, long]) => long === name)?.[0];
    const written = `${short === undefined ? '    ' : `-${short}, `}--${name}`;
    return `  ${written.padEnd(26)} ${properties[key]?.description ?? ''} (default ${JSON.stringify(properties[key]?.default)})`;
  });
  return [
    'Usage: gantry daemon [flags]',
    '',
    `  ${'    --config-file'.padEnd(26)} JSON file with the same settings, named as in dockerd's`,
    ...lines,
    `  ${'    --validate'.padEnd(26)} check the settings and exit`,
    `  ${'-v, --version'.padEnd(26)} print the version and exit`,
  ].join('\n');
}

function add(given: Given, { key, kind }: Flag, name: string, value: string, problems: string[]): void {
  const wrong = (expected: string): void =>
    void problems.push(`flag --${name}: ${expected} is expected, not "${value}"`);
  const [before, after] = splitOnce(value);
  if (kind === 'list') given[key] = [...((given[key] as string[] | undefined) ?? []), value];
  else if (kind === 'text') given[key] = value;
  else if (kind === 'number') {
    if (/^\d+$/.test(value)) given[key] = Number(value);
    else wrong('a number');
  } else if (kind === 'flag') {
    if (TRUE.test(value)) given[key] = true;
    else if (FALSE.test(value)) given[key] = false;
    else wrong('true or false');
  } else if (after === undefined || before === '' || (kind === 'ulimits' && !ULIMIT.test(after))) {
    wrong(kind === 'ulimits' ? 'name=soft[:hard]' : 'name=value');
  } else {
    const entry = kind === 'map' ? after : kind === 'runtimes' ? { path: after } : ulimit(after);
    given[key] = { ...(given[key] as object | undefined), [before]: entry };
  }
}

/** `1024:2048`, or one number for both. */
function ulimit(text: string): { Soft: number; Hard: number } {
  const [soft = '', hard = soft] = text.split(':');
  return { Soft: Number(soft), Hard: Number(hard) };
}

function splitOnce(text: string): [string, string | undefined] {
  const at = text.indexOf('=');
  return at < 0 ? [text, undefined] : [text.slice(0, at), text.slice(at + 1)];
}
