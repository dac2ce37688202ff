import { chmod, mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';

import { EXIT, Exit } from '../exit-codes.ts';
import { reasonOf } from '../failures.ts';
import { eraseInHelper, readFromHelper, storeInHelper } from './credential-helper.ts';

export type Login = { username?: string; password?: string; identitytoken?: string };

type Entry = { auth?: string; identitytoken?: string; [more: string]: unknown };
type ConfigFile = {
  auths?: Record<string, Entry>;
  credsStore?: string;
  credHelpers?: Record<string, string>;
  [more: string]: unknown;
};

/** The name of docker.io in docker's file. */
const DEFAULT_KEY = 'https://index.docker.io/v1/';

/** The registry that an image's name begins with. */
function registryOf(image: string): string {
  const [first = '', ...rest] = image.split('/');
  const isHost = rest.length > 0 && (/[.:]/.test(first) || first === 'localhost');
  return isHost ? first : 'docker.io';
}

/** The login of a registry in docker's own configuration file or its credential helper. */
export async function readLogin(registry: string): Promise<Login | undefined> {
  const { auths = {}, credHelpers = {}, credsStore } = await readConfig();
  const key = keyOf(registry);
  const helper = credHelpers[key] ?? credsStore;
  if (helper) return await readFromHelper(helper, key);
  // Old versions of docker wrote addresses.
  const name = Object.keys(auths).find((written) => written === key || hostIn(written) === hostIn(key));
  const entry = name === undefined ? undefined : auths[name];
  if (entry === undefined) return undefined;
  const [username = '', ...password] = Buffer.from(entry.auth ?? '', 'base64')
    .toString()
    .split(':');
  return { username, password: password.join(':'), ...(entry.identitytoken && { identitytoken: entry.identitytoken }) };
}

/** Keeps a login; true if it stands in the file, which protects it by its mode only. */
export async function storeLogin(registry: string, login: Login): Promise<boolean> {
  const config = await readConfig();
  const key = keyOf(registry);
  const helper = config.credHelpers?.[key] ?? config.credsStore;
  if (helper) {
    await storeInHelper(helper, key, login);
    await writeConfig({ ...config, auths: { ...config.auths, [key]: {} } });
    return false;
  }
  const { username = '', password = '', identitytoken } = login;
  // A token replaces the password.
  const auth = Buffer.from(`${username}:${identitytoken ? '' : password}`).toString('base64');
  const entry = { auth, ...(identitytoken && { identitytoken }) };
  await writeConfig({ ...config, auths: { ...config.auths, [key]: entry } });
  return true;
}

/** Removes a login; false if there was none. */
export async function eraseLogin(registry: string): Promise<boolean> {
  const config = await readConfig();
  const key = keyOf(registry);
  const helper = config.credHelpers?.[key] ?? config.credsStore;
  if (helper) await eraseInHelper(helper, key);
  const { [key]: known, ...auths } = config.auths ?? {};
  if (known === undefined) return helper !== undefined;
  await writeConfig({ ...config, auths });
  return true;
}

/** The header that carries a login to the engine. */
export async function authHeader(image: string): Promise<Record<string, string>> {
  const registry = registryOf(image);
  const login = await readLogin(registry);
  const value = login === undefined ? {} : { ...login, serveraddress: keyOf(registry) };
  return { 'X-Registry-Auth': encodeConfig(value) };
}

/** In docker's alphabet, with padding. */
function encodeConfig(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64').replaceAll('+', '-').replaceAll('/', '_');
}

/** The header that carries all logins: a build may need images of several registries. */
export async function allLogins(): Promise<Record<string, string>> {
  const { auths = {}, credHelpers = {} } = await readConfig();
  const names = [...new Set([...Object.keys(auths), ...Object.keys(credHelpers)])];
  const logins = await Promise.all(names.map(async (name) => [name, await readLogin(name)] as const));
  const known = logins.filter(([, login]) => login !== undefined);
  return { 'X-Registry-Config': encodeConfig(Object.fromEntries(known)) };
}

export function keyOf(registry: string): string {
  const host = hostIn(registry);
  return ['docker.io', 'index.docker.io', 'registry-1.docker.io'].includes(host) ? DEFAULT_KEY : host;
}

function hostIn(address: string): string {
  return address.replace(/^https?:\/\//, '').split('/')[0]!;
}

function configPath(): string {
  return join(process.env.DOCKER_CONFIG || join(homedir(), '.docker'), 'config.json');
}

async function readConfig(): Promise<ConfigFile> {
  const path = configPath();
  let text;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return {};
    throw new Exit(EXIT.failed, `cannot read ${path}: ${reasonOf(error)}`);
  }
  try {
    const config: unknown = JSON.parse(text);
    if (typeof config === 'object' && config !== null) return config as ConfigFile;
  } catch {
    // the same refusal
  }
  throw new Exit(EXIT.failed, `${path} is not JSON`);
}

/** Written beside and renamed; readable for the user alone. Other settings stay. */
async function writeConfig(config: ConfigFile): Promise<void> {
  const path = configPath();
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const beside = `${path}.part-${process.pid}`;
  await writeFile(beside, `${JSON.stringify(config, undefined, '\t')}\n`, { mode: 0o600 });
  await chmod(beside, 0o600);
  await rename(beside, path);
}
