import {
  constants,
  createServer,
  type Http2Server,
  type IncomingHttpHeaders,
  type ServerHttp2Stream,
} from 'node:http2';
import type { Duplex } from 'node:stream';

import { HeldMessages, messagesOf, writeMessage } from './frames.ts';
import type { Methods } from './service.ts';
import { GrpcError, StatusCode } from './status.ts';
import { trailersOf } from './trailers.ts';

const CONTENT_TYPE = 'application/grpc';
const MAX_STREAMS = 128;
/** A client that goes on sending behind its answer is cut off. */
const MAX_REST_MS = 10_000;
/** Bytes that a client may send before they are read. */
const WINDOW_BYTES = 1024 * 1024;

/** Serves methods of gRPC on connections that are given to it. */
export class GrpcServer {
  readonly #http: Http2Server;
  readonly #methods: Methods;
  readonly #toStatus: (error: unknown) => GrpcError;

  /** `toStatus`: the status of a failure for the client. */
  constructor(methods: Methods, toStatus: (error: unknown) => GrpcError) {
    this.#methods = methods;
    this.#toStatus = toStatus;
    this.#http = createServer({ settings: { maxConcurrentStreams: MAX_STREAMS, initialWindowSize: WINDOW_BYTES } });
    this.#http.on('stream', (stream, headers) => void this.#serve(stream as ServerHttp2Stream, headers));
    this.#http.on('sessionError', () => undefined); // the connection is closed, and its streams are aborted
  }

  /** A connection whose client speaks HTTP/2 from its first byte. */
  accept(connection: Duplex): void {
    this.#http.emit('connection', connection);
  }

  async #serve(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): Promise<void> {
    stream.on('error', () => stream.destroy());
    const type = headers['content-type'] ?? '';
    if (headers[':method'] !== 'POST' || !type.startsWith(CONTENT_TYPE)) {
      stream.respond({ ':status': 415 }, { endStream: true });
      return;
    }
    stream.respond({ ':status': 200, 'content-type': CONTENT_TYPE }, { waitForTrailers: true });
    let failure: GrpcError | undefined;
    stream.once('wantTrailers', () => stream.sendTrailers(trailersOf(failure)));
    try {
      await this.#call(stream, headers);
    } catch (error) {
      failure = this.#toStatus(error);
    }
    if (stream.destroyed) return;
    stream.end();
    stream.resume(); // what the client still sends is for nobody
    stream.setTimeout(MAX_REST_MS, () => stream.close(constants.NGHTTP2_NO_ERROR));
  }

  async #call(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): Promise<void> {
    const path = String(headers[':path']);
    const method = this.#methods.get(path);
    if (method === undefined)
      throw new GrpcError(StatusCode.UNIMPLEMENTED, `${path.slice(1)} is not part of this builder`);
    const gone = new AbortController();
    stream.once('close', () => gone.abort());
    // A method that needs no further message does not end the stream, on which it answers.
    const messages = messagesOf(stream.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>);
    using held = new HeldMessages();
    const answer = method(noted(messages, held), { headers, signal: gone.signal });
    for await (const message of answer) await writeMessage(stream, message);
  }
}

async function* noted(messages: AsyncIterable<Buffer>, held: HeldMessages): AsyncGenerator<Buffer> {
  for await (const message of messages) {
    held.add(message);
    yield message;
  }
}
