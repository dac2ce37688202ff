import type { Healthcheck } from './healthcheck.ts';

/** The settings of an image or a container as they are written into an image, nulls included. */
export type RunConfig = Readonly<{
  Hostname: string;
  Domainname: string;
  User: string;
  AttachStdin: boolean;
  AttachStdout: boolean;
  AttachStderr: boolean;
  ExposedPorts?: Readonly<Record<string, object>>;
  Tty: boolean;
  OpenStdin: boolean;
  StdinOnce: boolean;
  Env: readonly string[] | null;
  Cmd: readonly string[] | null;
  Healthcheck?: Healthcheck;
  Image: string;
  Volumes: Readonly<Record<string, object>> | null;
  WorkingDir: string;
  Entrypoint: readonly string[] | null;
  NetworkDisabled?: boolean;
  MacAddress?: string;
  OnBuild: readonly string[] | null;
  Labels: Readonly<Record<string, string>> | null;
  StopSignal?: string;
  StopTimeout?: number;
  Shell?: readonly string[];
}>;

/** Empty settings. An inspect shows all of these fields. */
export const EMPTY_CONFIG: RunConfig = {
  Hostname: '',
  Domainname: '',
  User: '',
  AttachStdin: false,
  AttachStdout: false,
  AttachStderr: false,
  Tty: false,
  OpenStdin: false,
  StdinOnce: false,
  Env: null,
  Cmd: null,
  Image: '',
  Volumes: null,
  WorkingDir: '',
  Entrypoint: null,
  OnBuild: null,
  Labels: null,
};

/** In the order of other engines; the fields behind the `?` are left out when they are empty. */
const ORDER = [
  'Hostname',
  'Domainname',
  'User',
  'AttachStdin',
  'AttachStdout',
  'AttachStderr',
  'ExposedPorts?',
  'Tty',
  'OpenStdin',
  'StdinOnce',
  'Env',
  'Cmd',
  'Healthcheck?',
  'Image',
  'Volumes',
  'WorkingDir',
  'Entrypoint',
  'NetworkDisabled?',
  'MacAddress?',
  'OnBuild',
  'Labels',
  'StopSignal?',
  'StopTimeout?',
  'Shell?',
] as const;
const MAPS: readonly string[] = ['ExposedPorts', 'Volumes', 'Labels'];
const LISTS: readonly string[] = ['Env', 'Cmd', 'Entrypoint', 'OnBuild', 'Shell'];

/** The known fields of an image, a container or a client, completed and in order. */
export function runConfigOf(written: Readonly<Record<string, unknown>>): RunConfig {
  const config: Record<string, unknown> = {};
  for (const field of ORDER) {
    const name = field.replace('?', '');
    const value = inForm(name, written[name] ?? (EMPTY_CONFIG as Readonly<Record<string, unknown>>)[name]);
    if (!field.endsWith('?') || !isEmpty(value)) config[name] = value;
  }
  return config as RunConfig;
}

/** Maps are sorted by their keys, as Go writes them; one word is a list of one. */
function inForm(name: string, value: unknown): unknown {
  if (value === null || value === undefined) return value;
  if (LISTS.includes(name)) return typeof value === 'string' ? [value] : value;
  if (!MAPS.includes(name)) return typeof value === 'number' && name === 'StopSignal' ? String(value) : value;
  const entries = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([key, inner]) => [key, name === 'Labels' ? (inner ?? '') : {}]));
}

function isEmpty(value: unknown): boolean {
  if (value === undefined || value === null || value === '' || value === false || value === 0) return true;
  return typeof value === 'object' && Object.keys(value).length === 0;
}
