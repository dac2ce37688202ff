import type { ServerResponse } from 'node:http';

/** Ends work for a client that has gone; not a failure of the engine. */
export class ClientGone extends Error {
  constructor(options?: ErrorOptions) {
    super('the client has gone', options);
  }
}

/**
 * Aborted when the client has left before the end of the answer. One that has half-closed its side still reads:
 * `hang-ups.ts` closes the connections of clients that go later.
 */
export function clientGone(response: ServerResponse): AbortSignal {
  const gone = new AbortController();
  const leave = (): void => gone.abort(new ClientGone());
  response.on('error', leave);
  response.once('close', () => {
    // The event also follows a complete answer, when there is nothing to abort.
    if (!response.writableFinished) leave();
  });
  return gone.signal;
}
