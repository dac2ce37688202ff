import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';

import { DetachDetector } from './detach-keys.ts';

/** The output is over, the client typed its detach keys, or it left. */
export type Ending = 'ended' | 'detached' | 'gone';

export type RelayOptions = {
  stdin: boolean;
  /** Bytes that end the session when the client types them; undefined: none do. */
  detachKeys: Buffer | undefined;
};

/**
 * Carries bytes between a client and a shim until the output has ended or the client is gone. Resolves with how.
 *
 * The client's side is left open: its end is the caller's, after the exit has been recorded.
 */
export async function relay(client: Duplex, shim: Socket, options: RelayOptions): Promise<Ending> {
  const { promise, resolve } = Promise.withResolvers<Ending>();
  client.on('error', () => resolve('gone'));
  client.on('close', () => resolve('gone'));
  shim.on('error', () => resolve('ended'));
  shim.on('end', () => resolve('ended'));
  shim.on('close', () => resolve('ended'));
  shim.pipe(client, { end: false });
  if (options.stdin) carryStdin(client, shim, options.detachKeys, () => resolve('detached'));
  else client.resume(); // only to see its end
  const how = await promise;
  shim.unpipe(client);
  shim.destroy();
  return how;
}

function carryStdin(client: Duplex, shim: Socket, keys: Buffer | undefined, detach: () => void): void {
  const detector = keys === undefined ? undefined : new DetachDetector(keys);
  client.on('data', (chunk: Buffer) => {
    const { passed, detached } = detector?.push(chunk) ?? { passed: chunk, detached: false };
    if (passed.length > 0 && !shim.write(passed)) {
      client.pause();
      shim.once('drain', () => client.resume());
    }
    if (detached) detach();
  });
  // A half-close of the client ends stdin only.
  client.on('end', () => shim.end());
  client.resume();
}
