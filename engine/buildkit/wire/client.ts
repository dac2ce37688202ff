import { connect, type ClientHttp2Session, type ClientHttp2Stream, type OutgoingHttpHeaders } from 'node:http2';
import type { Duplex } from 'node:stream';

import { messagesOf, writeMessage } from './frames.ts';
import type { Message } from './message.ts';
import { GrpcError, StatusCode } from './status.ts';
import { failureIn } from './trailers.ts';

/** Bytes that the other side may send before they are read: of a stream, and of all. */
const [STREAM_WINDOW_BYTES, WINDOW_BYTES] = [2 * 1024 * 1024, 8 * 1024 * 1024];

type Headers = Readonly<Record<string, string | readonly string[]>>;

/** A call with any number of messages in both directions. */
export type Exchange<Request, Response> = Readonly<{
  send: (request: Request) => Promise<void>;
  /** No further message is sent. */
  end: () => void;
  /** Throws the failure of the call behind the last message. */
  responses: AsyncIterable<Response>;
}> &
  Disposable;

/** Calls methods of gRPC on a connection whose other side serves them. */
export class GrpcClient {
  readonly #session: ClientHttp2Session;

  constructor(connection: Duplex) {
    this.#session = connect('http://session', {
      createConnection: () => connection,
      settings: { enablePush: false, initialWindowSize: STREAM_WINDOW_BYTES },
    });
    this.#session.on('connect', () => this.#session.setLocalWindowSize(WINDOW_BYTES));
    this.#session.on('error', () => undefined); // its streams fail
  }

  /** Aborted when the connection is over. */
  get closed(): AbortSignal {
    const closed = new AbortController();
    if (this.#session.destroyed) closed.abort();
    else this.#session.once('close', () => closed.abort());
    return closed.signal;
  }

  close(): void {
    this.#session.destroy();
  }

  /** One message each way. */
  async call<Request, Response>(
    path: string,
    request: Message<unknown, Request>,
    response: Message<Response, never>,
    value: Request,
    signal: AbortSignal,
  ): Promise<Response> {
    using exchange = this.exchange(path, request, response, signal);
    await exchange.send(value);
    exchange.end();
    let result: { value: Response } | undefined;
    for await (const each of exchange.responses) result = { value: each };
    if (result === undefined) throw new GrpcError(StatusCode.INTERNAL, `${path} was not answered`);
    return result.value;
  }

  exchange<Request, Response>(
    path: string,
    request: Message<unknown, Request>,
    response: Message<Response, never>,
    signal: AbortSignal,
    headers: Headers = {},
  ): Exchange<Request, Response> {
    if (this.#session.destroyed) throw gone();
    const stream = this.#session.request({
      ':method': 'POST',
      ':path': path,
      te: 'trailers',
      'content-type': 'application/grpc',
      ...(headers as OutgoingHttpHeaders),
    });
    const cancel = (): void => stream.close(8);
    signal.addEventListener('abort', cancel, { once: true });
    if (signal.aborted) cancel();
    stream.on('error', () => undefined); // `responses` throws
    const failure = failureOf(stream);
    return {
      send: async (value) => {
        try {
          await writeMessage(stream, request.encode(value));
        } catch (error) {
          throw (stream.destroyed ? await failure : undefined) ?? error; // the other side says why
        }
      },
      end: () => void stream.end(),
      responses: decoded(stream, response, failure, signal),
      [Symbol.dispose]: () => {
        signal.removeEventListener('abort', cancel);
        if (!stream.closed) cancel();
      },
    };
  }
}

/** Settled with the end of the call; with its failure, if it failed. */
async function failureOf(stream: ClientHttp2Stream): Promise<GrpcError | undefined> {
  const { promise, resolve } = Promise.withResolvers<GrpcError | undefined>();
  const look = (headers: Parameters<typeof failureIn>[0]): void => {
    if (headers['grpc-status'] !== undefined) resolve(failureIn(headers));
  };
  stream.on('response', look);
  stream.on('trailers', look);
  stream.on('close', () => resolve(gone()));
  return await promise;
}

async function* decoded<Response>(
  stream: ClientHttp2Stream,
  response: Message<Response, never>,
  failure: Promise<GrpcError | undefined>,
  signal: AbortSignal,
): AsyncGenerator<Response> {
  try {
    for await (const bytes of messagesOf(stream)) yield response.decode(bytes);
  } catch (error) {
    signal.throwIfAborted();
    if (!stream.destroyed) throw error; // not the end of the stream, whose trailers may be there
  }
  signal.throwIfAborted();
  const failed = await failure;
  if (failed !== undefined) throw failed;
}

function gone(): GrpcError {
  return new GrpcError(StatusCode.UNAVAILABLE, 'the client has left');
}
