import type { IncomingMessage } from 'node:http';

/** Of a body that nobody wants; a client that sends more, or for longer, loses its connection. */
const LONGEST_REST_BYTES = 64 * 1024 * 1024;
const LONGEST_REST_MS = 60_000;

/**
 * After an answer that did not need the whole body: reads the rest and drops it. Else a connection that is kept would
 * wait for ever, its next request behind bytes that nobody reads.
 */
export function dropUnread(request: IncomingMessage): void {
  const { 'content-length': length = '0', 'transfer-encoding': coding } = request.headers;
  if (request.readableEnded || request.destroyed || (length === '0' && coding === undefined)) return;
  const { socket } = request;
  let left = LONGEST_REST_BYTES;
  const late = AbortSignal.timeout(LONGEST_REST_MS);
  const cut = (): void => void socket.destroy();
  late.addEventListener('abort', cut, { once: true });
  request.on('data', (piece: Buffer) => {
    left -= piece.length;
    if (left < 0) cut();
  });
  request.on('close', () => late.removeEventListener('abort', cut)).on('error', () => undefined); // its client has left
  request.removeAllListeners('readable'); // of who has stopped reading: they would keep it from flowing
  request.resume();
}
