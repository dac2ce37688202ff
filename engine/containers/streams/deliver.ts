import type { Writable } from 'node:stream';

/** Writes pieces with backpressure, until they end or the other side is gone. Leaves it open. */
export async function deliver(pieces: AsyncIterable<Buffer>, to: Writable): Promise<void> {
  for await (const piece of pieces) {
    if (to.destroyed) return;
    if (!to.write(piece)) await writable(to);
  }
}

async function writable(to: Writable): Promise<void> {
  if (to.destroyed || !to.writableNeedDrain) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  const settle = (): void => resolve();
  to.on('drain', settle).on('close', settle).on('error', settle);
  await promise;
  to.off('drain', settle).off('close', settle).off('error', settle);
}
