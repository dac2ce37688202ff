import type { Readable } from 'node:stream';

import type { PageInvitation } from '@gantry/engine/page/schema.ts';
import type { Info, Version } from '@gantry/engine/system/schema.ts';

import type { Connection, Query } from './connection.ts';

export type { Info, Version } from '@gantry/engine/system/schema.ts';
export type { EventMessage } from '@gantry/engine/events/schema.ts';

/** GET /version. */
export async function version(engine: Connection): Promise<Version> {
  return await engine.call('GET', '/version');
}

/** GET /info. */
export async function info(engine: Connection): Promise<Info> {
  return await engine.call('GET', '/info');
}

/** GET /events: a stream of JSON lines (`jsonLines<EventMessage>`), open until it is destroyed or `until` is reached. */
export async function events(engine: Connection, query: Query = {}): Promise<Readable> {
  return await engine.stream('GET', '/events', { query });
}

/** POST /page: an address that opens the page in a browser, once. */
export async function invitePage(engine: Connection, readOnly: boolean): Promise<PageInvitation> {
  return await engine.call('POST', '/page', { body: { ReadOnly: readOnly }, version: '1.25' });
}

/** DELETE /page: ends all open pages. */
export async function closePage(engine: Connection): Promise<void> {
  await engine.call('DELETE', '/page', { version: '1.25' });
}

export type Usage = { TotalCount: number; ActiveCount: number; TotalSize: number; Reclaimable: number };
type DiskUsage = Record<'ImageUsage' | 'ContainerUsage' | 'VolumeUsage' | 'BuildCacheUsage', Usage>;

/** GET /system/df. */
export async function diskUsage(engine: Connection): Promise<DiskUsage> {
  return await engine.call('GET', '/system/df', { query: { verbose: true }, version: '1.52' });
}
