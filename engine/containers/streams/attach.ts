import type { Duplex } from 'node:stream';

import type { Engine } from '../../engine.ts';
import { EngineError } from '../../lib/errors.ts';
import { logDriverOf } from '../../logs/drivers.ts';
import { ShimLost, type AttachOptions, type Shim } from '../../runtime/shim/shim.ts';
import { emitIfThere } from '../container-events.ts';
import type { Container } from '../store.ts';
import { deliver } from './deliver.ts';
import { parseDetachKeys } from './detach-keys.ts';
import { Relay } from './relay.ts';

type Needs = Pick<Engine, 'containers' | 'events' | 'runs'>;

type AttachRequest = Readonly<{
  logs?: boolean;
  stream?: boolean;
  stdin?: boolean;
  stdout?: boolean;
  stderr?: boolean;
  detachKeys?: string;
}>;

/** An attach whose checks have passed. */
export type Attach = Readonly<{
  container: Container;
  wanted: AttachOptions;
  /** Without a terminal the bytes of the detach keys are data. */
  detachKeys: Buffer | undefined;
  /** The client's half-close ends the session: with a terminal and without StdinOnce stdin stays open for others. */
  endsWithStdin: boolean;
  /** StdinOnce: the session with a running container lasts until its exit. */
  lastsUntilExit: boolean;
}>;

/** Makes all checks before the connection is taken over. Throws `notFound`, `invalid`, `conflict` (paused). */
export function prepareAttach(engine: Needs, ref: string, request: AttachRequest): Attach {
  const { logs = false, stdout = false, stderr = false } = request;
  const keys = parseDetachKeys(request.detachKeys);
  const container = engine.containers.find(ref);
  const { config, state } = container;
  if (state.status === 'paused') {
    throw new EngineError('conflict', `container ${ref} is paused, unpause the container before attach`);
  }
  if (state.status === 'removing') throw new EngineError('conflict', `container ${ref} is being removed`);
  const stdin = request.stdin === true && config.OpenStdin;
  const stream = request.stream === true && (stdin || stdout || stderr);
  const closesStdin = config.StdinOnce && !config.Tty;
  return {
    container,
    wanted: { logs, stream, stdin: stream && stdin, stdout, stderr },
    detachKeys: config.Tty ? keys : undefined,
    endsWithStdin: stream && stdin && !closesStdin,
    lastsUntilExit: request.stream === true && closesStdin,
  };
}

/**
 * Connects a client with the container's streams until they end, it leaves, it types the detach keys, or it ends a stdin
 * that stays open without it (with a terminal, and without StdinOnce).
 *
 * `open` sends the head of the answer, and returns the client's stream: from then on the client gets all output. For a
 * stopped container the log is sent; with `stream` the client is connected to the next start, before the first byte.
 * The client's stream ends only when the exit is stored. Specification, endpoint 18.
 */
export async function attachContainer(engine: Needs, attach: Attach, open: () => Duplex): Promise<void> {
  const { container, wanted } = attach;
  const connect = (): Duplex => {
    const client = open();
    emitIfThere(engine, 'attach', container.id); // not before: listeners take the client for connected
    return client;
  };
  const shim = engine.runs.of(container.id).shimForClients;
  if (shim !== undefined) return await carry(engine, attach, shim, connect);
  const client = connect();
  try {
    // Both begin at this moment, so output of a start in between comes only by the stream.
    const logSent = wanted.logs ? sendLog(attach, client) : Promise.resolve();
    if (wanted.stream) await afterStart(engine, attach, client, logSent);
    await logSent;
  } finally {
    client.end();
  }
}

/** Waits for the start, which waits for the shim to have accepted this client. */
async function afterStart(engine: Needs, attach: Attach, client: Duplex, logSent: Promise<void>): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const gone = (): void => resolve();
  const connect = async (shim: Shim): Promise<void> => {
    const accepted = Promise.withResolvers<void>();
    client.off('end', gone); // from here on the relay passes it on
    const live = { ...attach, wanted: { ...attach.wanted, logs: false }, lastsUntilExit: false };
    const open = async (): Promise<Duplex> => {
      accepted.resolve();
      await logSent; // meanwhile the shim buffers the output
      return client;
    };
    carry(engine, live, shim, open).finally(accepted.resolve).then(resolve, reject);
    await accepted.promise;
  };
  using _pending = engine.runs.of(attach.container.id).addClient({ connect, cancel: resolve });
  client.on('close', gone).on('error', gone);
  if (attach.endsWithStdin) client.on('end', gone); // without bytes before it, which wait for the start
  try {
    await promise;
  } finally {
    client.off('close', gone).off('end', gone);
  }
}

async function carry(engine: Needs, attach: Attach, shim: Shim, open: () => Duplex | Promise<Duplex>): Promise<void> {
  const { container, wanted, detachKeys, endsWithStdin } = attach;
  const left = new AbortController();
  const recorded = engine.runs.of(container.id).nextEnd(left.signal);
  try {
    const relay = await openRelay(shim, wanted);
    const client = await open();
    client.once('close', () => left.abort());
    try {
      const how = await relay?.carry(client, { stdin: wanted.stdin, endsWithStdin, detachKeys });
      if (relay === undefined && wanted.logs) await sendLog(attach, client);
      if (how === 'detached') emitIfThere(engine, 'detach', container.id);
      // The end of a lost shim's container is about to be recorded.
      if (how === undefined || (how === 'ended' && endsWithRun(attach))) await recorded;
    } finally {
      client.end();
    }
  } finally {
    left.abort();
  }
}

/** Undefined when the shim has just ended. */
async function openRelay(shim: Shim, wanted: AttachOptions): Promise<Relay | undefined> {
  try {
    return await Relay.open(shim, wanted);
  } catch (error) {
    if (error instanceof ShimLost) return undefined;
    throw error;
  }
}

/** The end of the log, or of stdin only, is not the container's end. */
function endsWithRun({ wanted: { stream, stdout, stderr }, lastsUntilExit }: Attach): boolean {
  return lastsUntilExit || (stream && (stdout || stderr));
}

async function sendLog({ container, wanted }: Attach, client: Duplex): Promise<void> {
  const read = logDriverOf(container).reader?.(container);
  if (read === undefined) return;
  const { stdout, stderr } = wanted;
  const selection = { stdout, stderr, timestamps: false, details: undefined, framed: !container.config.Tty };
  await deliver(read({ ...selection, tail: 'all' }), client);
}
