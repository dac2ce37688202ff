import type { Readable } from 'node:stream';

import type { Changes, FileList } from '@gantry/engine/containers/schema.ts';

import { ApiError, type Connection } from './connection.ts';

export type PathStat = { name: string; size: number; mode: number; mtime: string; linkTarget: string };

/** Bit of Go's os.FileMode. */
const MODE_DIRECTORY = 2 ** 31;
const MODE_SYMLINK = 2 ** 27;

/** HEAD /containers/{ref}/archive; undefined for a missing path. */
export async function statPath(engine: Connection, ref: string, path: string): Promise<PathStat | undefined> {
  const { status, headers } = await engine.request('HEAD', archivePath(ref), { query: { path } });
  if (status === 404) return undefined;
  if (status >= 400) throw new ApiError(status, `cannot look at ${path} in container ${ref}`);
  return statOf(headers['x-docker-container-path-stat']);
}

/** GET /containers/{ref}/archive. */
export async function getArchive(engine: Connection, ref: string, path: string): Promise<Readable> {
  return await engine.stream('GET', archivePath(ref), { query: { path } });
}

/** PUT /containers/{ref}/archive: a folder is not replaced by something else, nor the reverse. */
export async function putArchive(
  engine: Connection,
  ref: string,
  { path, archive, toUser = false }: { path: string; archive: Readable; toUser?: boolean },
): Promise<void> {
  const query = { path, noOverwriteDirNonDir: true, copyUIDGID: toUser };
  await engine.call('PUT', archivePath(ref), { query, body: archive });
}

/** GET /containers/{ref}/changes. */
export async function changes(engine: Connection, ref: string): Promise<NonNullable<Changes>> {
  return (await engine.call<Changes>('GET', `/containers/${encodeURIComponent(ref)}/changes`)) ?? [];
}

/** GET /containers/{ref}/files: the entries of a folder. */
export async function listFiles(engine: Connection, ref: string, path: string): Promise<FileList> {
  return await engine.call('GET', `/containers/${encodeURIComponent(ref)}/files`, { query: { path } });
}

/** GET /volumes/{name}/files: the entries of a folder. */
export async function listVolumeFiles(engine: Connection, name: string, path: string): Promise<FileList> {
  return await engine.call('GET', `/volumes/${encodeURIComponent(name)}/files`, { query: { path } });
}

/** GET /volumes/{name}/archive. */
export async function getVolumeArchive(engine: Connection, name: string, path: string): Promise<Readable> {
  return await engine.stream('GET', `/volumes/${encodeURIComponent(name)}/archive`, { query: { path } });
}

/** GET /containers/{ref}/export. */
export async function exportContainer(engine: Connection, ref: string): Promise<Readable> {
  return await engine.stream('GET', `/containers/${encodeURIComponent(ref)}/export`);
}

export function isFolder({ mode }: PathStat): boolean {
  return mode >= MODE_DIRECTORY;
}

export function isLink({ mode }: PathStat): boolean {
  return Math.floor(mode / MODE_SYMLINK) % 2 === 1;
}

function archivePath(ref: string): string {
  return `/containers/${encodeURIComponent(ref)}/archive`;
}

function statOf(header: string | string[] | undefined): PathStat {
  return JSON.parse(Buffer.from(String(header), 'base64').toString()) as PathStat;
}
