import type { VolumeWire } from '@gantry/engine/volumes/schema.ts';

import type { Connection, Query } from './connection.ts';

export type { VolumeWire } from '@gantry/engine/volumes/schema.ts';

type VolumeBody = {
  Name?: string;
  Driver?: string;
  DriverOpts?: Record<string, string>;
  Labels?: Record<string, string>;
};

/** GET /volumes. */
export async function listVolumes(engine: Connection, query: Query = {}): Promise<VolumeWire[]> {
  const { Volumes } = await engine.call<{ Volumes: VolumeWire[] | null }>('GET', '/volumes', { query });
  return Volumes ?? [];
}

/** POST /volumes/create. */
export async function createVolume(engine: Connection, body: VolumeBody): Promise<VolumeWire> {
  return await engine.call('POST', '/volumes/create', { body });
}

/** GET /volumes/{name}. */
export async function inspectVolume(engine: Connection, name: string): Promise<VolumeWire> {
  return await engine.call('GET', path(name));
}

/** DELETE /volumes/{name}. */
export async function removeVolume(engine: Connection, name: string, force = false): Promise<void> {
  await engine.call('DELETE', path(name), { query: { force } });
}

function path(name: string): string {
  return `/volumes/${encodeURIComponent(name)}`;
}
