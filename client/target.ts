import { contextEndpoint, contextName } from './contexts.ts';

/** The address of an engine. */
export type Target =
  | { kind: 'unix'; socketPath: string }
  | { kind: 'tcp'; host: string; port: number; tls?: { ca?: Buffer; cert?: Buffer; key?: Buffer; verify: boolean } };

/** The default address of root's `gantry daemon`. */
export const DEFAULT_HOST = 'unix:///run/gantry/gantry.sock';

const MAX_PORT = 65_535;

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Reads a host as docker writes it: `unix:///path`, `tcp://host:port`, or empty for the default.
 *
 * With `DOCKER_TLS_VERIFY` set, TCP is TLS with the certificates of `DOCKER_CERT_PATH`; a context has its own.
 */
export function targetOf(host: string | undefined, environment: Environment): Target {
  const address = addressOf(host, environment);
  if (address.startsWith('unix://')) return { kind: 'unix', socketPath: address.slice('unix://'.length) };
  const tcp = /^tcp:\/\/(\[[^\]]+\]|[^:/]+)(?::(\d+))?\/?$/.exec(address);
  if (tcp === null || Number(tcp[2] ?? 0) > MAX_PORT)
    throw new Error(`invalid host "${address}": expected unix:///path or tcp://host:port`);
  const name = tcp[1]!.replace(/^\[(.*)\]$/, '$1');
  const isVerified = (environment.DOCKER_TLS_VERIFY ?? '') !== '';
  const context = isVerified ? undefined : contextEndpoint(environment);
  const tls = isVerified ? certificates(environment) : context?.host === address ? context.tls : undefined;
  const port = Number(tcp[2] ?? (tls === undefined ? 2375 : 2376));
  return { kind: 'tcp', host: name, port, ...(tls !== undefined && { tls }) };
}

/** The first of the flag, `GANTRY_HOST`, `DOCKER_HOST`, the context of `DOCKER_CONTEXT` and the default that is not empty. */
export function addressOf(host: string | undefined, environment: Environment): string {
  const given = [host, environment.GANTRY_HOST, environment.DOCKER_HOST];
  const found = given.find((each) => each !== undefined && each !== '');
  if (found !== undefined) return found;
  const context = contextName(environment);
  if (context === undefined) return ownHost(environment) ?? DEFAULT_HOST;
  const endpoint = contextEndpoint(environment);
  if (endpoint === undefined) throw new Error(`docker has no context "${context}": see docker context ls`);
  return endpoint.host;
}

/**
 * The address of this user's own engine, if there is one. Anybody may make a folder in /tmp: only the user's own counts.
 */
function ownHost({ XDG_RUNTIME_DIR: folder = '' }: Environment): string | undefined {
  const uid = process.getuid?.() ?? 0;
  if (uid === 0) return undefined;
  const { lstatSync } = process.getBuiltinModule('node:fs');
  const own = folder === '' ? [`/run/user/${uid}/gantry`, `/tmp/gantry-${uid}`] : [`${folder}/gantry`];
  const isOwn = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false })?.uid === uid;
  const socket = own
    .filter(isOwn)
    .map((path) => `${path}/gantry.sock`)
    .find(isOwn);
  return socket === undefined ? undefined : `unix://${socket}`;
}

function certificates(environment: Environment): { ca: Buffer; cert: Buffer; key: Buffer; verify: boolean } {
  // An `import` would load all of node:fs, even for a Unix socket: 12 ms.
  const { readFileSync } = process.getBuiltinModule('node:fs');
  const folder = environment.DOCKER_CERT_PATH ?? `${environment.HOME ?? '/root'}/.docker`;
  const read = (name: string): Buffer => readFileSync(`${folder}/${name}`);
  return { ca: read('ca.pem'), cert: read('cert.pem'), key: read('key.pem'), verify: true };
}
