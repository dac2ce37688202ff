import { readdirSync, readFileSync, statSync } from 'node:fs';
import { basename, extname, join } from 'node:path';

import { Type, type Static } from 'typebox';

import { parseBoundedJson } from '../lib/bounded-json.ts';
import { EngineError, hasCode } from '../lib/errors.ts';
import { lazyCheck } from '../lib/lazy-check.ts';

const JsonPlugin = Type.Object({
  Name: Type.Optional(Type.String()),
  Addr: Type.String(),
  TLSConfig: Type.Optional(
    Type.Object({
      InsecureSkipVerify: Type.Optional(Type.Boolean()),
      CAFile: Type.Optional(Type.String()),
      CertFile: Type.Optional(Type.String()),
      KeyFile: Type.Optional(Type.String()),
    }),
  ),
});
const jsonPlugin = lazyCheck(JsonPlugin);

/**
 * The address of a plugin: a Unix socket, or host and port, with TLS if its file has settings for that. The socket of one that
 * the engine runs is in a folder that the plugin writes.
 */
export type PluginAddress = Readonly<
  | { kind: 'unix'; socketPath: string }
  | { kind: 'own'; folder: string; socket: string }
  | { kind: 'tcp'; host: string; port: number; tls: Static<typeof JsonPlugin>['TLSConfig'] }
>;

/** Not a path, which could lead out of the folders, and with its extension not longer than a file's name may be. */
const NAME = /^\w[\w.:-]{0,249}$/;

const EXTENSIONS = ['.sock', '.spec', '.json'] as const;

/**
 * Finds a plugin by name in these folders: a socket `NAME.sock`, an address in `NAME.spec`, or a description in
 * `NAME.json`, each also in a folder `NAME`; sockets first. Throws `failed` for a file that cannot be understood.
 */
export function findPlugin(folders: readonly string[], name: string): PluginAddress | undefined {
  if (!isPluginName(name)) return undefined;
  for (const extension of EXTENSIONS) {
    for (const folder of folders) {
      for (const path of [join(folder, name + extension), join(folder, name, name + extension)]) {
        const address = addressIn(path, extension);
        if (address !== undefined) return address;
      }
    }
  }
  return undefined;
}

/** Whether a plugin of another program can have this name. */
export function isPluginName(name: string): boolean {
  return NAME.test(name);
}

/** The names of all plugins in these folders. */
export function pluginNames(folders: readonly string[]): string[] {
  const files = folders.flatMap((folder) =>
    entries(folder).flatMap((entry) => [entry, ...entries(join(folder, entry)).filter((file) => isOf(file, entry))]),
  );
  const names = files.filter((file) => EXTENSIONS.some((extension) => file.endsWith(extension)));
  return [...new Set(names.map((file) => basename(file, extname(file))))].toSorted();
}

function isOf(file: string, folder: string): boolean {
  return basename(file, extname(file)) === folder;
}

function entries(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    if (hasCode(error, 'ENOENT') || hasCode(error, 'ENOTDIR')) return [];
    throw error;
  }
}

function addressIn(path: string, extension: (typeof EXTENSIONS)[number]): PluginAddress | undefined {
  try {
    if (extension === '.sock') return statSync(path).isSocket() ? { kind: 'unix', socketPath: path } : undefined;
    const text = readFileSync(path, 'utf8');
    return extension === '.spec' ? parseAddress(text.trim(), path) : describedIn(text, path);
  } catch (error) {
    if (hasCode(error, 'ENOENT') || hasCode(error, 'ENOTDIR')) return undefined;
    throw error;
  }
}

function describedIn(text: string, path: string): PluginAddress {
  let read: unknown;
  try {
    read = parseBoundedJson(text);
  } catch (error) {
    throw new EngineError('failed', `the plugin's file ${path} is not JSON`, { cause: error });
  }
  if (!jsonPlugin.Check(read)) throw new EngineError('failed', `the plugin's file ${path} has no address in "Addr"`);
  const address = parseAddress(read.Addr, path);
  return address.kind === 'tcp' && read.TLSConfig !== undefined ? { ...address, tls: read.TLSConfig } : address;
}

/** `unix:///path` or `tcp://host:port`, also with `http` and `https`. */
function parseAddress(text: string, path: string): PluginAddress {
  const url = URL.parse(text);
  if (url?.protocol === 'unix:' && url.pathname !== '') return { kind: 'unix', socketPath: url.pathname };
  const [, host, port] = /^(?:tcp|https?):\/\/(\[[^\]]+\]|[^/:]+):(\d+)\/?$/.exec(text) ?? [];
  if (host === undefined)
    throw new EngineError('failed', `the plugin's file ${path} does not name an address: ${text}`);
  const tls = text.startsWith('https:') ? {} : undefined;
  return { kind: 'tcp', host: host.replace(/^\[|\]$/g, ''), port: Number(port), tls };
}
