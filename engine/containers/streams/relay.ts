import { Socket } from 'node:net';
import type { Duplex, Transform } from 'node:stream';

import { ReusedBuffers } from '../../runtime/reused-buffers.ts';
import type { AttachOptions, Shim } from '../../runtime/shim/shim.ts';
import { DetachDetector } from './detach-keys.ts';

/** A session's end: of the output, by the detach keys, or because the client left (`endsWithStdin`: or half-closed). */
export type Ending = 'ended' | 'detached' | 'gone';

type RelayOptions = Readonly<{
  stdin: boolean;
  /** The shim ends the output after the client's half-close. */
  endsWithStdin: boolean;
  /** Bytes that end the session when the client types them; undefined: none do. */
  detachKeys: Buffer | undefined;
  /** A transform between the shim's output and the client, if their framing differs. */
  reframe?: Transform | undefined;
}>;

/** A connection to a shim, whose output is paused until it is relayed to a client. */
export class Relay {
  readonly #shim: Socket;
  readonly #buffers: ReusedBuffers;

  private constructor(shim: Socket, buffers: ReusedBuffers) {
    this.#shim = shim;
    this.#buffers = buffers;
  }

  static async open(shim: Shim, options: AttachOptions): Promise<Relay> {
    const buffers = new ReusedBuffers();
    return new Relay(await shim.attach(options, buffers), buffers);
  }

  /**
   * Relays bytes between a client and the shim until the output has ended or the client is gone, and resolves with
   * which.
   *
   * The client's side is left open: its end is the caller's, after the exit has been recorded.
   */
  async carry(client: Duplex, options: RelayOptions): Promise<Ending> {
    const { promise, resolve } = Promise.withResolvers<Ending>();
    const gone = (): void => resolve('gone');
    const ended = (): void => resolve(options.endsWithStdin && client.readableEnded ? 'gone' : 'ended');
    if (client.destroyed) gone();
    client.on('error', gone).on('close', gone);
    this.#carryOutput(client, options.reframe, ended);
    if (options.stdin) carryStdin(client, this.#shim, options.detachKeys, () => resolve('detached'));
    else client.resume(); // only to see its end
    const how = await promise;
    options.reframe?.unpipe(client);
    this.#shim.destroy();
    client.off('error', gone).off('close', gone);
    return how;
  }

  #carryOutput(client: Duplex, reframe: Transform | undefined, ended: () => void): void {
    const shim = this.#shim;
    // The last bytes have to pass the transform before the end.
    const through = reframe === undefined ? ended : () => void reframe.end();
    shim.on('error', ended).on('close', () => {
      if (reframe === undefined || !shim.readableEnded) ended();
    });
    // Earlier events are not repeated for a new listener.
    if (shim.readableEnded) through();
    else if (shim.destroyed) ended();
    else shim.on('end', through);
    reframe?.on('end', ended).pipe(client, { end: false });
    const to = reframe ?? client;
    // A socket has sent the bytes when it says so; others may still hold them.
    const keeps = !(to instanceof Socket);
    this.#buffers.flow(shim, (piece, taken) => to.write(keeps ? Buffer.from(piece) : piece, taken));
  }
}

function carryStdin(client: Duplex, shim: Socket, keys: Buffer | undefined, detach: () => void): void {
  const detector = keys === undefined ? undefined : new DetachDetector(keys);
  client.on('data', (chunk: Buffer) => {
    if (shim.destroyed || shim.writableEnded) return; // it is no longer read
    const { passed, detached } = detector?.push(chunk) ?? { passed: chunk, detached: false };
    if (passed.length > 0 && !shim.write(passed)) {
      client.pause();
      shim.once('drain', () => client.resume());
    }
    if (detached) detach();
  });
  // A half-close of the client ends stdin only.
  const endInput = (): void => {
    if (shim.destroyed) return;
    const held = detector?.flush();
    if (held !== undefined && held.length > 0) shim.write(held);
    shim.end();
  };
  if (client.readableEnded) endInput();
  else client.on('end', endInput);
  client.resume();
}
