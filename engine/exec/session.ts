import { constants } from 'node:os';
import { Transform, type Duplex } from 'node:stream';

import { emitIfThere } from '../containers/container-events.ts';
import { parseDetachKeys } from '../containers/streams/detach-keys.ts';
import type { Relay } from '../containers/streams/relay.ts';
import { encodeFrame, FrameDecoder, STDOUT } from '../http/streams/frames.ts';
import { EngineError } from '../lib/errors.ts';
import { messageOf } from '../lib/failure-message.ts';
import { runExec, type Claimed, type ExecNeeds } from './start.ts';

const { SIGHUP, SIGKILL } = constants.signals;
const HANGUP_GRACE_MS = 5000;

/**
 * Runs an exec attached to a client, until the output ends, the client leaves, or types the detach keys. The process
 * continues without a client, unless it `endsWithClient`.
 *
 * Errors are text on stdout of the stream, because the answer's head was already sent; docker's clients show them.
 */
export async function runSession(
  engine: ExecNeeds,
  claimed: Claimed,
  tty: boolean,
  client: Duplex,
  { endsWithClient = false } = {},
): Promise<void> {
  const { exec, container } = claimed;
  const recorded = Promise.withResolvers<void>();
  let session = Promise.resolve();
  const connect = (relay: Relay): void => {
    session = carry(relay);
  };
  try {
    const run = await runExec(engine, claimed, connect);
    await run.recorded;
    recorded.resolve();
    await session;
  } catch (error) {
    const text = Buffer.from(`${messageOf(error)}\r\n`);
    client.write(tty ? text : encodeFrame(STDOUT, text));
    if (!(error instanceof EngineError)) throw error;
  } finally {
    recorded.resolve();
    client.end();
  }

  async function carry(relay: Relay): Promise<void> {
    const how = await relay.carry(client, {
      stdin: exec.openStdin,
      endsWithStdin: exec.openStdin && exec.tty,
      detachKeys: exec.tty ? parseDetachKeys(exec.detachKeys) : undefined,
      reframe: exec.tty === tty ? undefined : reframer(tty),
    });
    if (how === 'gone' && endsWithClient) hangUp(engine, exec.id);
    if (how === 'detached') emitIfThere(engine, 'exec_detach', container.id, { execID: exec.id });
    // An inspect after the end of the stream must agree.
    if (how === 'ended') await recorded.promise;
    client.end();
  }
}

/** Ends the process of an exec like a closed terminal does, and kills one that ignores it. */
function hangUp({ background, execShims }: ExecNeeds, id: string): void {
  const signal = async (number: number): Promise<void> => await execShims.get(id)?.signal(number);
  background.run('hang up an exec', { exec: id }, async () => await signal(SIGHUP));
  background.after(HANGUP_GRACE_MS, 'kill an exec without a client', { exec: id }, async () => await signal(SIGKILL));
}

/** For a client that asked for another format at the start than at the creation. */
function reframer(tty: boolean): Transform {
  let decoded: Buffer[] = [];
  const decoder = new FrameDecoder((_type, payload) => decoded.push(payload));
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      if (!tty) {
        done(null, encodeFrame(STDOUT, chunk));
        return;
      }
      decoder.push(chunk);
      const text = Buffer.concat(decoded);
      decoded = [];
      done(null, text);
    },
  });
}
