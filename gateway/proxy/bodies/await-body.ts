import { answerMessage } from '../answer.ts';
import type { Exchange } from '../exchange.ts';
import type { HeldBody } from './held-body.ts';

/** A connection to the upstream is taken when the whole body is here, or this much of it. */
export const MAX_HELD_BYTES = 2 ** 20;

/**
 * Waits for the whole body of a request, or for more than `maxBytes` of it. Meanwhile the request counts as under way,
 * without CPU time. Returns false when it was answered here, or its client has gone.
 */
export async function awaitBody(exchange: Exchange, body: HeldBody, maxBytes = MAX_HELD_BYTES): Promise<boolean> {
  if (body.isWhole || body.size > maxBytes) return true;
  const { req, gateway } = exchange;
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const onData = (piece: Buffer): void => {
    const stored = body.add(piece);
    const isEnough = body.size > maxBytes;
    if (stored === undefined && !isEnough) return;
    req.pause();
    if (isEnough) resolve(stored);
    else stored?.then(() => req.resume(), reject);
  };
  const onEnd = (): void => {
    body.isWhole = true;
    resolve();
  };
  exchange.body = body;
  exchange.whenClosed = { clientClosed: resolve };
  req.on('data', onData).once('end', onEnd);
  req.resume();
  try {
    await promise;
    return !exchange.closed;
  } catch (error) {
    gateway.log.spoolFailure(error);
    if (!exchange.closed) answerMessage(exchange, 503, 'Too many slow uploads are under way.', ['retry-after', '1']);
    return false;
  } finally {
    req.off('data', onData).off('end', onEnd);
    exchange.whenClosed = undefined;
  }
}
