import type { ServerResponse } from 'node:http';

/**
 * Aborted when the client has left before the end of the answer.
 *
 * Our sockets stay open for writing when the client has sent its last byte, so Node does not take that for the end of
 * the connection. On a request that was not taken over it is one all the same: nobody half-closes and reads on, and
 * without this a follower of a silent stream would stay for ever.
 */
export function clientGone(response: ServerResponse): AbortSignal {
  const gone = new AbortController();
  const { socket } = response;
  const leave = (): void => gone.abort(new Error('the client has gone'));
  socket?.once('end', leave);
  response.on('error', leave);
  response.once('close', () => {
    socket?.off('end', leave);
    // It comes after a complete answer too; then there is nobody to be told.
    if (!response.writableFinished) leave();
  });
  return gone.signal;
}
