import { mkdirSync, rmSync } from 'node:fs';
import { chmod, chown } from 'node:fs/promises';
import { createServer, type Socket } from 'node:net';
import { join } from 'node:path';

import type { Config } from '../../config/daemon-config.ts';
import { newId, shortId } from '../../lib/ids.ts';
import { secretsFolder } from '../secrets.ts';

/** The agents of a client for `RUN --mount=type=ssh`, by their ids. */
export type SshAgents = Readonly<{
  has: (id: string) => Promise<boolean>;
  /** Passes bytes in both directions until one side has ended; throws the failure of the client's side. */
  forward: (id: string, connection: Socket) => Promise<void>;
}>;

export const NO_AGENTS: SshAgents = {
  has: async () => await Promise.resolve(false),
  forward: async () => await Promise.reject(new Error('there are no agents')),
};

type Owner = Readonly<{ uid: number; gid: number; mode: number }>;

/** Connections of a step at a time; further ones are closed. */
const MAX_CONNECTIONS = 32;

/** A socket to an agent of the client, for one step. */
export async function agentSocket(
  { config }: { config: Pick<Config, 'execRoot'> },
  agents: SshAgents,
  id: string,
  { uid, gid, mode }: Owner,
): Promise<AsyncDisposable & { path: string }> {
  const folder = join(secretsFolder(config), shortId(newId()));
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  await using undo = new AsyncDisposableStack();
  undo.defer(() => rmSync(folder, { recursive: true, force: true }));
  const connections = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true }, (connection) => {
    connections.add(connection);
    connection.once('close', () => connections.delete(connection)).on('error', () => undefined);
    // A failure ends the connection, and the program in the step says so.
    agents.forward(id, connection).catch(() => connection.destroy());
  });
  server.maxConnections = MAX_CONNECTIONS;
  undo.defer(() => {
    server.close();
    for (const connection of connections) connection.destroy();
  });
  const path = join(folder, 'agent');
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once('error', reject).listen(path, resolve);
  await promise;
  await chmod(path, mode);
  await chown(path, uid, gid);
  const parts = undo.move();
  return { path, [Symbol.asyncDispose]: async () => await parts.disposeAsync() };
}
