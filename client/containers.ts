import type { Duplex, Readable } from 'node:stream';

import type { CreateBody, Created, Inspect, Summary, Top, UpdateBody } from '@gantry/engine/containers/schema.ts';
import type { Stats } from '@gantry/engine/containers/stats/schema.ts';
import type { Static } from 'typebox';

import type { Connection, Query } from './connection.ts';

export type { CreateBody, Inspect, Summary } from '@gantry/engine/containers/schema.ts';
export type { Stats } from '@gantry/engine/containers/stats/schema.ts';

/** POST /containers/create. 404 is a missing image. */
export async function create(engine: Connection, body: CreateBody, query: Query = {}): Promise<Static<typeof Created>> {
  return await engine.call('POST', '/containers/create', { query, body });
}

/** GET /containers/json. */
export async function list(engine: Connection, query: Query = {}): Promise<Summary[]> {
  return await engine.call('GET', '/containers/json', { query });
}

/** GET /containers/{ref}/json. */
export async function inspect(engine: Connection, ref: string, size = false): Promise<Inspect> {
  return await engine.call('GET', `${path(ref)}/json`, { query: { size } });
}

/** POST /containers/{ref}/start. */
export async function start(engine: Connection, ref: string, detachKeys?: string): Promise<void> {
  await engine.call('POST', `${path(ref)}/start`, { query: { detachKeys } });
}

/** POST /containers/{ref}/stop. `graceSeconds` as the client wrote it, the engine's default otherwise. */
export async function stop(engine: Connection, ref: string, graceSeconds?: string): Promise<void> {
  await engine.call('POST', `${path(ref)}/stop`, { query: { t: graceSeconds } });
}

/** POST /containers/{ref}/restart. */
export async function restart(engine: Connection, ref: string, graceSeconds?: string): Promise<void> {
  await engine.call('POST', `${path(ref)}/restart`, { query: { t: graceSeconds } });
}

/** POST /containers/{ref}/pause. */
export async function pause(engine: Connection, ref: string): Promise<void> {
  await engine.call('POST', `${path(ref)}/pause`);
}

/** POST /containers/{ref}/unpause. */
export async function unpause(engine: Connection, ref: string): Promise<void> {
  await engine.call('POST', `${path(ref)}/unpause`);
}

/** POST /containers/{ref}/rename. */
export async function rename(engine: Connection, ref: string, name: string): Promise<void> {
  await engine.call('POST', `${path(ref)}/rename`, { query: { name } });
}

/** GET /containers/{ref}/top. */
export async function top(engine: Connection, ref: string, psArguments?: string): Promise<Top> {
  return await engine.call('GET', `${path(ref)}/top`, { query: { ps_args: psArguments } });
}

/** GET /containers/{ref}/stats: one sample. */
export async function stats(engine: Connection, ref: string): Promise<Stats> {
  return await engine.call('GET', `${path(ref)}/stats`, { query: { stream: 'false' } });
}

/** Returns statistics as a stream of JSON lines (`jsonLines<Stats>`), one a second, open until the signal. */
export async function statsStream(engine: Connection, ref: string, signal: AbortSignal): Promise<Readable> {
  return await engine.stream('GET', `${path(ref)}/stats`, { signal });
}

/** POST /containers/{ref}/update: warnings. */
export async function update(engine: Connection, ref: string, body: UpdateBody): Promise<string[]> {
  const { Warnings } = await engine.call<{ Warnings: string[] | null }>('POST', `${path(ref)}/update`, { body });
  return Warnings ?? [];
}

/** POST /containers/{ref}/kill. */
export async function kill(engine: Connection, ref: string, signal: string): Promise<void> {
  await engine.call('POST', `${path(ref)}/kill`, { query: { signal } });
}

/** POST /containers/{ref}/resize, in characters. */
export async function resize(engine: Connection, ref: string, size: { width: number; height: number }): Promise<void> {
  await engine.call('POST', `${path(ref)}/resize`, { query: { w: size.width, h: size.height } });
}

/** POST /containers/{ref}/wait: the exit code. */
export async function wait(engine: Connection, ref: string): Promise<number> {
  const { StatusCode } = await engine.call<{ StatusCode: number }>('POST', `${path(ref)}/wait`);
  return StatusCode;
}

/** DELETE /containers/{ref}. */
export async function remove(
  engine: Connection,
  ref: string,
  query: { force?: boolean; v?: boolean; link?: boolean } = {},
): Promise<void> {
  await engine.call('DELETE', path(ref), { query });
}

/** POST /containers/{ref}/attach: the connection, raw with a terminal, framed without. */
export async function attach(
  engine: Connection,
  ref: string,
  query: { logs?: boolean; stream?: boolean; stdin?: boolean; stdout?: boolean; stderr?: boolean; detachKeys?: string },
): Promise<{ socket: Duplex }> {
  return await engine.hijack(`${path(ref)}/attach`, { query });
}

/** GET /containers/{ref}/logs. */
export async function logs(engine: Connection, ref: string, query: Query): Promise<Readable> {
  return await engine.stream('GET', `${path(ref)}/logs`, { query });
}

function path(ref: string): string {
  return `/containers/${encodeURIComponent(ref)}`;
}
