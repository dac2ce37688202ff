import type { Readable } from 'node:stream';

export type { HistoryStep, ImageSummary } from '@gantry/engine/images/schema.ts';

import type { DeleteResult, HistoryStep, ImageInspect, ImageSummary } from '@gantry/engine/images/schema.ts';

import { ApiError, type Connection, type Query } from './connection.ts';
import { jsonLines } from './json-lines.ts';

type Progress = { status?: string; stream?: string; id?: string; progress?: string; error?: string };

/** Older engines would ignore a parameter: a request with it names the version that knows it. */
function since(version: string, parameter: string | undefined): { version?: string } {
  return parameter === undefined ? {} : { version };
}

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
  query: { force?: boolean; noprune?: boolean; platforms?: readonly string[] } = {},
): Promise<DeleteResult[]> {
  return await engine.call('DELETE', `/images/${name}`, { query, ...since('1.50', query.platforms?.[0]) });
}

/** GET /images/{name}/history; `platform` in JSON, as in all requests but pulls and imports. */
export async function imageHistory(engine: Connection, name: string, platform?: string): Promise<HistoryStep[]> {
  return await engine.call('GET', `/images/${name}/history`, { query: { platform }, ...since('1.48', platform) });
}

/** POST /images/{name}/tag: the new name with or without a tag. */
export async function tagImage(engine: Connection, name: string, newName: string): Promise<void> {
  // A colon before a slash is that of a registry's port.
  const at = newName.indexOf(':', newName.lastIndexOf('/') + 1);
  const [repo, tag] = at < 0 ? [newName, undefined] : [newName.slice(0, at), newName.slice(at + 1)];
  await engine.call('POST', `/images/${name}/tag`, { query: { repo, tag } });
}

/** GET /images/get: an archive of the images. */
export async function saveImages(
  engine: Connection,
  names: readonly string[],
  platform?: readonly string[],
): Promise<Readable> {
  return await engine.stream('GET', '/images/get', { query: { names, platform }, ...since('1.48', platform?.[0]) });
}

/** POST /images/load. `report` gets a line for each step. */
export async function loadImages(
  engine: Connection,
  archive: Readable | Buffer,
  { quiet, platform }: { quiet: boolean; platform?: readonly string[] },
  report: (line: string) => void,
): Promise<void> {
  const options = { query: { quiet, platform }, body: archive, ...since('1.48', platform?.[0]) };
  const progress = await engine.stream('POST', '/images/load', options);
  await follow(progress, report);
}

/**
 * POST /images/create?fromSrc=…, of an archive or of a URL that the engine fetches: makes an image of a root file system;
 * returns its id.
 */
export async function importImage(
  engine: Connection,
  source: Readable | Buffer | string,
  options: { name: string; changes: readonly string[]; message: string; platform?: string | undefined },
): Promise<string> {
  const progress = await engine.stream('POST', '/images/create', {
    query: {
      fromSrc: typeof source === 'string' ? source : '-',
      repo: options.name,
      message: options.message,
      changes: options.changes,
      platform: options.platform,
    },
    ...(typeof source !== 'string' && { body: source }),
  });
  let last = '';
  await follow(progress, (line) => (last = line));
  return last;
}

/** POST /build. `show` gets the texts of the steps, as they come. */
export async function buildImage(
  engine: Connection,
  { query, headers, body }: { query: Query; headers: Record<string, string>; body?: Readable },
  show: (text: string) => void,
): Promise<void> {
  const progress = await engine.stream('POST', '/build', { query, headers, ...(body !== undefined && { body }) });
  await watch(progress, ({ stream, status, id }) => {
    if (stream !== undefined) show(stream);
    else if (status !== undefined) show(`${id === undefined ? '' : `${id}: `}${status}\n`);
  });
}

/** POST /commit: makes an image of a container; returns its id. */
export async function commitContainer(engine: Connection, query: Query): Promise<string> {
  const { Id } = await engine.call<{ Id: string }>('POST', '/commit', { query });
  return Id;
}

/** POST /images/create?fromImage=…: pulls an image, or all tags of a name without one. */
export async function pullImage(
  engine: Connection,
  { name, platform }: { name: string; platform?: string | undefined },
  headers: Record<string, string>,
  show: (line: Progress) => void,
): Promise<void> {
  await watch(await engine.stream('POST', '/images/create', { query: { fromImage: name, platform }, headers }), show);
}

/** POST /images/{name}/push: an image, or all tags of a name without one. */
export async function pushImage(
  engine: Connection,
  { name, platform }: { name: string; platform?: string | undefined },
  headers: Record<string, string>,
  show: (line: Progress) => void,
): Promise<void> {
  const options = { query: { platform }, headers, ...since('1.46', platform) };
  await watch(await engine.stream('POST', `/images/${name}/push`, options), show);
}

export type SearchResult = {
  star_count: number;
  is_official: boolean;
  name: string;
  is_automated: boolean;
  description: string;
};

/** GET /images/search. `filters` in JSON. */
export async function searchImages(
  engine: Connection,
  query: { term: string; limit?: number; filters?: string },
  headers: Record<string, string>,
): Promise<SearchResult[]> {
  return await engine.call('GET', '/images/search', { query, headers });
}

/** POST /auth. */
export async function logIn(
  engine: Connection,
  login: { username?: string; password?: string; identitytoken?: string; serveraddress: string },
): Promise<{ Status: string; IdentityToken: string }> {
  return await engine.call('POST', '/auth', { body: login });
}

async function watch(progress: Readable, show: (line: Progress) => void): Promise<void> {
  for await (const line of jsonLines<Progress>(progress)) {
    if (line.error !== undefined) throw new ApiError(500, line.error);
    show(line);
  }
}

async function follow(progress: Readable, report: (line: string) => void): Promise<void> {
  for await (const { status, stream, id, error } of jsonLines<Progress>(progress)) {
    if (error !== undefined) throw new ApiError(500, error);
    const text = stream ?? status;
    if (text !== undefined) report(id === undefined ? text.trimEnd() : `${id}: ${text}`);
  }
}
