import type { Clock } from '../lib/clock.ts';
import type { Answer } from './connection/direct.ts';
import { Retries } from './connection/retry.ts';
import { RegistryError } from './errors.ts';
import type { Descriptor } from './manifests.ts';
import type { Repository } from './repository.ts';

export type Transfer = {
  clock: Clock;
  signal: AbortSignal;
  onProgress: (bytes: number) => void;
  /** Called before a wait of so many seconds. */
  onRetry: (seconds: number) => void;
};

/**
 * The bytes of a blob. A broken download is resumed; only attempts without any bytes count as failed. Throws when the
 * size differs from the descriptor's.
 */
export async function* downloadBlob(
  repository: Repository,
  descriptor: Descriptor,
  transfer: Transfer,
): AsyncGenerator<Uint8Array> {
  const { digest, size } = descriptor;
  const retries = new Retries(transfer);
  let at = 0;
  for (;;) {
    const before = at;
    let failure: unknown;
    try {
      const answer = await open(repository, descriptor, at, transfer);
      for await (const piece of bodyFrom(answer, at)) {
        at += piece.length;
        if (at > size)
          throw new RegistryError(`layer ${digest} is larger than the ${size} bytes that its manifest states`);
        transfer.onProgress(at);
        yield piece;
      }
      if (at === size) return;
    } catch (error) {
      transfer.signal.throwIfAborted();
      if (error instanceof RegistryError) throw error;
      failure = error;
    }
    if (at > before) retries.reset();
    await retries.pause(
      new RegistryError(`layer ${digest} broke off after ${at} of ${size} bytes`, { cause: failure }),
    );
  }
}

/** From the registry alone, as dockerd on Linux: addresses of a manifest (`urls`) may be of this machine. */
async function open(
  repository: Repository,
  { digest }: Descriptor,
  at: number,
  { signal, onRetry }: Transfer,
): Promise<Answer> {
  const headers: Record<string, string> = { 'accept-encoding': 'identity', ...(at > 0 && { range: `bytes=${at}-` }) };
  const ask = { method: 'GET', headers, scopes: repository.scopes, signal, onRetry } as const;
  return await repository.session.ask(repository.address(`blobs/${digest}`), ask);
}

/** The body from `at` on, also from a server without ranges. */
async function* bodyFrom({ statusCode, headers, body }: Answer, at: number): AsyncGenerator<Uint8Array> {
  const start = /^bytes (\d+)-/.exec(headers['content-range'] ?? '')?.[1];
  let skip = statusCode === 206 ? at - Number(start ?? at) : at;
  if (skip < 0) throw new RegistryError('the registry answers with another range than requested');
  for await (const piece of body) {
    const bytes = piece as Buffer;
    if (skip < bytes.length) yield bytes.subarray(skip);
    skip = Math.max(0, skip - bytes.length);
  }
}
