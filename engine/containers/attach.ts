import type { Duplex } from 'node:stream';

import type { Events } from '../events/events.ts';
import { EngineError } from '../lib/errors.ts';
import { ShimLost, type AttachOptions, type Shim } from '../runtime/shim.ts';
import { emitContainer } from './container-events.ts';
import { deliver } from './deliver.ts';
import { parseDetachKeys } from './detach-keys.ts';
import type { Exits } from './exits.ts';
import { readLog } from './log-file.ts';
import type { PendingAttaches } from './pending-attaches.ts';
import { Relay, type Ending } from './relay.ts';
import type { Shims } from './shims.ts';
import type { Container, ContainerStore } from './store.ts';

type Needs = {
  containers: ContainerStore;
  events: Events;
  exits: Exits;
  pendingAttaches: PendingAttaches;
  shims: Shims;
};

export type AttachRequest = Readonly<{
  logs?: boolean;
  stream?: boolean;
  stdin?: boolean;
  stdout?: boolean;
  stderr?: boolean;
  detachKeys?: string;
}>;

/** An attach that nothing speaks against. */
export type Attach = Readonly<{
  container: Container;
  wanted: AttachOptions;
  /** Without a terminal the bytes of the detach keys are data. */
  detachKeys: Buffer | undefined;
}>;

/** What can be refused, before the connection is taken over. Throws `notFound`, `invalid`, `conflict` (paused). */
export function prepareAttach(engine: Needs, ref: string, request: AttachRequest): Attach {
  const { logs = false, stdin = false, stdout = false, stderr = false } = request;
  const keys = parseDetachKeys(request.detachKeys);
  const container = engine.containers.find(ref);
  const { config, state } = container;
  if (state.status === 'paused') {
    throw new EngineError('conflict', `container ${ref} is paused, unpause the container before attach`);
  }
  if (state.status === 'removing') throw new EngineError('conflict', `container ${ref} is being removed`);
  const stream = request.stream === true && (stdin || stdout || stderr);
  const wanted = { logs, stream, stdin: stream && stdin && config.OpenStdin, stdout, stderr };
  return { container, wanted, detachKeys: config.Tty ? keys : undefined };
}

/**
 * Connects a client with the container's streams until they end, it leaves, or it types the detach keys.
 *
 * Of a container that does not run the log is sent; with `stream` it is connected with the next start, before the
 * first byte. The client's stream ends only when the exit is stored. Specification, endpoint 18.
 */
export async function attachContainer(engine: Needs, attach: Attach, client: Duplex): Promise<void> {
  const { container } = attach;
  emitContainer(engine.events, 'attach', container);
  try {
    const how = await connect(engine, attach, client);
    if (how === 'detached') emitContainer(engine.events, 'detach', engine.containers.get(container.id) ?? container);
  } finally {
    client.end();
  }
}

async function connect(engine: Needs, attach: Attach, client: Duplex): Promise<Ending> {
  const { id } = attach.container;
  const shim = engine.shims.get(id) ?? engine.pendingAttaches.starting(id);
  if (shim !== undefined) return await carry(engine, attach, client, shim);
  // Both begin now: what a start in between writes comes by the stream, and only by the stream.
  const logSent = attach.wanted.logs ? sendLog(attach, client) : Promise.resolve();
  if (attach.wanted.stream) return await afterStart(engine, attach, client, logSent);
  await logSent;
  return 'ended';
}

/** Waits for the start, which waits for the shim to have accepted this client. */
async function afterStart(engine: Needs, attach: Attach, client: Duplex, logSent: Promise<void>): Promise<Ending> {
  const outcome = Promise.withResolvers<Ending>();
  const connect = async (shim: Shim): Promise<void> => {
    const accepted = Promise.withResolvers<void>();
    const wanted = { ...attach.wanted, logs: false };
    carry(engine, { ...attach, wanted }, client, shim, { accepted: accepted.resolve, first: logSent }).then(
      outcome.resolve,
      outcome.reject,
    );
    await accepted.promise;
  };
  const gone = (): void => outcome.resolve('gone');
  using _pending = engine.pendingAttaches.add(attach.container.id, {
    connect,
    cancel: () => outcome.resolve('ended'),
  });
  client.on('close', gone).on('error', gone);
  try {
    return await outcome.promise;
  } finally {
    client.off('close', gone);
  }
}

type Order = {
  /** Called when the shim has accepted the client, or never will. */
  accepted(): void;
  /** Sent to the client before the stream; meanwhile the shim holds the output for it. */
  first: Promise<void>;
};

async function carry(engine: Needs, attach: Attach, client: Duplex, shim: Shim, order?: Order): Promise<Ending> {
  const { container, wanted, detachKeys } = attach;
  const left = new AbortController();
  const recorded = engine.exits.runs.next(container.id, left.signal);
  try {
    const relay = await Relay.open(shim, wanted);
    order?.accepted();
    await order?.first;
    const how = await relay.carry(client, { stdin: wanted.stdin, detachKeys });
    if (how === 'ended' && lastsAsTheRun(attach)) await recorded;
    return how;
  } catch (error) {
    if (!(error instanceof ShimLost)) throw error;
    await recorded; // its end was on the way
    return 'ended';
  } finally {
    order?.accepted();
    left.abort();
  }
}

/** Of the log, and of stdin alone, the end says nothing about the container's. */
function lastsAsTheRun({ container: { config }, wanted }: Attach): boolean {
  const { stream, stdin, stdout, stderr } = wanted;
  return stream && (stdout || stderr || (stdin && config.StdinOnce && !config.Tty));
}

async function sendLog({ container, wanted }: Attach, client: Duplex): Promise<void> {
  const { logPath, config } = container;
  if (logPath === '') return;
  const { stdout, stderr } = wanted;
  const selection = { stdout, stderr, timestamps: false, details: undefined, framed: !config.Tty };
  await deliver(readLog(logPath, { ...selection, tail: 'all' }), client);
}
