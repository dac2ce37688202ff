import type { IncomingMessage } from 'node:http';

import { bytesPassed } from '../../host/garbage.ts';

/** The limits of an unwanted body; a client that sends more, or for longer, loses its connection. */
const MAX_REST_BYTES = 64 * 1024 * 1024;
const MAX_REST_MS = 60_000;

/**
 * Drops the rest of a body after an answer that did not need it. Otherwise the next request of the connection would
 * stay behind unread bytes for ever.
 */
export function dropUnread(request: IncomingMessage): void {
  const { 'content-length': length = '0', 'transfer-encoding': coding } = request.headers;
  if (request.readableEnded || request.destroyed || (length === '0' && coding === undefined)) return;
  const { socket } = request;
  let left = MAX_REST_BYTES;
  const late = AbortSignal.timeout(MAX_REST_MS);
  const cut = (): void => void socket.destroy();
  late.addEventListener('abort', cut, { once: true });
  request.on('data', (piece: Buffer) => {
    left -= piece.length;
    bytesPassed(piece.length);
    if (left < 0) cut();
  });
  request.on('close', () => late.removeEventListener('abort', cut)).on('error', () => undefined); // its client has left
  request.removeAllListeners('readable'); // listeners of a stopped reader would keep it from flowing
  request.resume();
}
