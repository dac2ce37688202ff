import { once } from 'node:events';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';

import type { Events } from '../events/events.ts';
import { EngineError } from '../lib/errors.ts';
import type { Shim } from '../runtime/shim.ts';
import { emitContainer } from './container-events.ts';
import { parseDetachKeys } from './detach-keys.ts';
import type { Exits } from './exits.ts';
import { readLog } from './log-file.ts';
import type { PendingAttaches } from './pending-attaches.ts';
import { relay, type Ending } from './relay.ts';
import type { Shims } from './shims.ts';
import { isAlive } from './state.ts';
import type { Container, ContainerStore } from './store.ts';

type Needs = {
  containers: ContainerStore;
  events: Events;
  exits: Exits;
  pendingAttaches: PendingAttaches;
  shims: Shims;
};

export type AttachRequest = Readonly<{
  logs: boolean;
  stream: boolean;
  stdin: boolean;
  stdout: boolean;
  stderr: boolean;
  detachKeys?: string;
}>;

/** What can be refused, before the connection is taken over. Throws `notFound`, `invalid`, `conflict` (paused). */
export function prepareAttach(
  engine: Needs,
  ref: string,
  request: AttachRequest,
): { container: Container; keys: Buffer } {
  const keys = parseDetachKeys(request.detachKeys);
  const container = engine.containers.find(ref);
  if (container.state.status === 'paused') {
    throw new EngineError('conflict', `Container ${container.id} is paused, unpause the container before attach.`);
  }
  return { container, keys };
}

/**
 * Connects a client with the container's streams until they end, it leaves, or it types the detach keys.
 *
 * Of a container that does not run the log is sent; with `stream` it is connected with the next start, before the
 * first byte. The client's stream ends only when the exit is stored. Specification, endpoint 18.
 */
export async function attachContainer(
  engine: Needs,
  { container, keys }: { container: Container; keys: Buffer },
  request: AttachRequest,
  client: Duplex,
): Promise<void> {
  const { id, config } = container;
  emitContainer(engine.events, 'attach', container);
  const stdin = request.stdin && config.OpenStdin;
  const open = async (shim: Shim, logs: boolean): Promise<Socket> => await shim.attach({ ...request, stdin, logs });
  // Without a terminal the bytes of the detach keys are data.
  const carry = async (socket: Socket): Promise<Ending> =>
    await relay(client, socket, { stdin, detachKeys: config.Tty ? keys : undefined });
  const shim = engine.shims.get(id);
  let how: Ending = 'ended';
  if (shim !== undefined) {
    how = await carry(await open(shim, request.logs));
  } else {
    if (request.logs) await sendLog(container, request, client);
    if (request.stream && !isAlive(container.state)) how = await afterStart(engine, id, client, open, carry);
  }
  if (how === 'ended') await engine.exits.recorded(id);
  if (how === 'detached') emitContainer(engine.events, 'detach', engine.containers.get(id) ?? container);
  client.end();
}

/** Waits for the start, which waits for the shim to have accepted this client. */
async function afterStart(
  engine: Needs,
  id: string,
  client: Duplex,
  open: (shim: Shim, logs: boolean) => Promise<Socket>,
  carry: (socket: Socket) => Promise<Ending>,
): Promise<Ending> {
  const outcome = Promise.withResolvers<Ending>();
  const connect = async (shim: Shim): Promise<void> => {
    const socket = await open(shim, false);
    carry(socket).then(outcome.resolve, outcome.reject);
  };
  using _pending = engine.pendingAttaches.add(id, { connect, cancel: () => outcome.resolve('ended') });
  const left = (): void => outcome.resolve('gone');
  client.once('close', left).once('error', left);
  try {
    return await outcome.promise;
  } finally {
    client.off('close', left);
  }
}

async function sendLog(
  { logPath, config }: Container,
  { stdout, stderr }: AttachRequest,
  client: Duplex,
): Promise<void> {
  if (logPath === '') return;
  const query = { stdout, stderr, timestamps: false, details: false, framed: !config.Tty, tail: 'all' as const };
  for await (const piece of readLog(logPath, query)) {
    if (client.destroyed) return;
    if (!client.write(piece)) await once(client, 'drain').catch(() => undefined);
  }
}
