import { rmSync } from 'node:fs';
import { chmod, chown, mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

import type { Config } from '../config/daemon-config.ts';
import { EngineError } from '../lib/errors.ts';
import { newId, shortId } from '../lib/ids.ts';

/** By their ids. */
export type Secrets = Readonly<{ get: (id: string) => Buffer | undefined | Promise<Buffer | undefined> }>;
type Needs = { config: Pick<Config, 'execRoot'> };
type Owner = Readonly<{ uid: number; gid: number; mode: number }>;

/**
 * The header `X-Build-Secrets`: base64 of a JSON map of ids to contents, each in base64 again. Throws `invalid` without any
 * word of it.
 */
export function secretsIn(header: string | undefined): Secrets {
  if (header === undefined || header === '') return new Map();
  let value: unknown;
  try {
    value = JSON.parse(Buffer.from(header, 'base64').toString());
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw unreadable();
  }
  if (value === null) return new Map();
  if (typeof value !== 'object' || Array.isArray(value)) throw unreadable();
  return new Map(Object.entries(value).map(([id, content]) => [id, contentOf(content)]));
}

function contentOf(text: unknown): Buffer {
  if (typeof text === 'string' && /^[\w+/-]*={0,2}$/.test(text)) return Buffer.from(text, 'base64');
  throw unreadable();
}

function unreadable(): EngineError {
  return new EngineError('invalid', 'X-Build-Secrets is not base64 of a JSON map of ids to base64');
}

/**
 * A secret as a file, for one step. It lies below the exec root, which is memory on usual machines, and goes with the step;
 * those of a killed daemon go at the next start.
 */
export async function secretFile(
  { config }: Needs,
  content: Buffer,
  { uid, gid, mode }: Owner,
): Promise<AsyncDisposable & { path: string }> {
  const folder = secretsFolder(config);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const path = join(folder, shortId(newId()));
  await using undo = new AsyncDisposableStack();
  undo.defer(async () => await rm(path, { force: true }));
  await writeFile(path, content, { mode: 0o400, flag: 'wx' });
  await chmod(path, mode);
  await chown(path, uid, gid);
  const parts = undo.move();
  return { path, [Symbol.asyncDispose]: async () => await parts.disposeAsync() };
}

export function removeOldSecrets(config: Pick<Config, 'execRoot'>): void {
  rmSync(secretsFolder(config), { recursive: true, force: true });
}

/** A folder in memory on usual machines, which each start of the daemon empties. */
export function secretsFolder({ execRoot }: Pick<Config, 'execRoot'>): string {
  return join(execRoot, 'build-secrets');
}
