import type { Duplex } from 'node:stream';

import type { ExecCreateBody, ExecInspect } from '@gantry/engine/exec/schema.ts';

import type { Connection } from './connection.ts';

/** POST /containers/{ref}/exec: the exec's id. */
export async function create(engine: Connection, ref: string, body: ExecCreateBody): Promise<string> {
  const { Id } = await engine.call<{ Id: string }>('POST', `/containers/${encodeURIComponent(ref)}/exec`, { body });
  return Id;
}

/** POST /exec/{id}/start, attached: the connection, raw with a terminal, framed without. */
export async function start(engine: Connection, id: string, tty: boolean): Promise<{ socket: Duplex }> {
  return await engine.hijack(`/exec/${id}/start`, { body: { Detach: false, Tty: tty } });
}

/** POST /exec/{id}/start, detached: returns when the command runs. */
export async function startDetached(engine: Connection, id: string, tty: boolean): Promise<void> {
  await engine.call('POST', `/exec/${id}/start`, { body: { Detach: true, Tty: tty } });
}

/** POST /exec/{id}/resize, in characters. */
export async function resize(engine: Connection, id: string, size: { width: number; height: number }): Promise<void> {
  await engine.call('POST', `/exec/${id}/resize`, { query: { w: size.width, h: size.height } });
}

/** GET /exec/{id}/json. */
export async function inspect(engine: Connection, id: string): Promise<ExecInspect> {
  return await engine.call('GET', `/exec/${id}/json`);
}
