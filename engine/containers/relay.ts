import type { Socket } from 'node:net';
import type { Duplex, Transform } from 'node:stream';

import { DetachDetector } from './detach-keys.ts';

/** The output is over, the client typed its detach keys, or it left. */
export type Ending = 'ended' | 'detached' | 'gone';

export type RelayOptions = Readonly<{
  stdin: boolean;
  /** Bytes that end the session when the client types them; undefined: none do. */
  detachKeys: Buffer | undefined;
  /** Between the shim's output and the client, where the two frame it differently. */
  reframe?: Transform | undefined;
}>;

/**
 * Carries bytes between a client and a shim until the output has ended or the client is gone. Resolves with how.
 *
 * The client's side is left open: its end is the caller's, after the exit has been recorded.
 */
export async function relay(client: Duplex, shim: Socket, options: RelayOptions): Promise<Ending> {
  const { promise, resolve } = Promise.withResolvers<Ending>();
  const gone = (): void => resolve('gone');
  const ended = (): void => resolve('ended');
  if (client.destroyed) gone();
  client.on('error', gone).on('close', gone);
  const output = options.reframe === undefined ? shim : shim.pipe(options.reframe);
  // The last bytes have to be through the transform before the end counts.
  output.on('end', ended);
  shim.on('error', ended).on('close', () => {
    if (options.reframe === undefined || !shim.readableEnded) ended();
  });
  output.pipe(client, { end: false });
  if (options.stdin) carryStdin(client, shim, options.detachKeys, () => resolve('detached'));
  else client.resume(); // only to see its end
  const how = await promise;
  output.unpipe(client);
  shim.destroy();
  client.off('error', gone).off('close', gone);
  return how;
}

function carryStdin(client: Duplex, shim: Socket, keys: Buffer | undefined, detach: () => void): void {
  const detector = keys === undefined ? undefined : new DetachDetector(keys);
  client.on('data', (chunk: Buffer) => {
    if (shim.destroyed || shim.writableEnded) return; // nobody reads it any more
    const { passed, detached } = detector?.push(chunk) ?? { passed: chunk, detached: false };
    if (passed.length > 0 && !shim.write(passed)) {
      client.pause();
      shim.once('drain', () => client.resume());
    }
    if (detached) detach();
  });
  // A half-close of the client ends stdin only.
  client.on('end', () => {
    if (shim.destroyed) return;
    const held = detector?.flush();
    if (held !== undefined && held.length > 0) shim.write(held);
    shim.end();
  });
  client.resume();
}
