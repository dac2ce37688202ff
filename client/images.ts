import type { Readable } from 'node:stream';

import type { DeleteResult, ImageInspect, ImageSummary } from '@gantry/engine/images/schema.ts';

import { ApiError, type Connection, type Query } from './connection.ts';
import { jsonLines } from './json-lines.ts';

type Progress = { status?: string; stream?: string; id?: string; progress?: string; error?: string };

/** GET /images/json. */
export async function listImages(engine: Connection, query: Query = {}): Promise<ImageSummary[]> {
  return await engine.call('GET', '/images/json', { query });
}

/** GET /images/{name}/json. */
export async function inspectImage(engine: Connection, name: string): Promise<ImageInspect> {
  return await engine.call('GET', `/images/${name}/json`);
}

/** DELETE /images/{name}. */
export async function removeImage(
  engine: Connection,
  name: string,
  query: { force?: boolean; noprune?: boolean } = {},
): Promise<DeleteResult[]> {
  return await engine.call('DELETE', `/images/${name}`, { query });
}

/** POST /images/load. `report` gets a line for each step. */
export async function loadImages(
  engine: Connection,
  archive: Readable | Buffer,
  quiet: boolean,
  report: (line: string) => void,
): Promise<void> {
  const progress = await engine.stream('POST', '/images/load', { query: { quiet }, body: archive });
  await follow(progress, report);
}

/** POST /images/create?fromSrc=-: makes an image of a root file system; returns its id. */
export async function importImage(
  engine: Connection,
  archive: Readable | Buffer,
  options: { name: string; changes: readonly string[]; message: string },
): Promise<string> {
  const progress = await engine.stream('POST', '/images/create', {
    query: { fromSrc: '-', repo: options.name, message: options.message, changes: options.changes },
    body: archive,
  });
  let last = '';
  await follow(progress, (line) => (last = line));
  return last;
}

/** POST /images/create?fromImage=…: pulls an image. */
export async function pullImage(engine: Connection, name: string, report: (line: string) => void): Promise<void> {
  const tagged = /[:@][^/]+$/.test(name) ? name : `${name}:latest`;
  const progress = await engine.stream('POST', '/images/create', { query: { fromImage: tagged } });
  await follow(progress, report);
}

async function follow(progress: Readable, report: (line: string) => void): Promise<void> {
  for await (const { status, stream, id, error } of jsonLines<Progress>(progress)) {
    if (error !== undefined) throw new ApiError(500, error);
    const text = stream ?? status;
    if (text !== undefined) report(id === undefined ? text.trimEnd() : `${id}: ${text}`);
  }
}
