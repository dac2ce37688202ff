import {
  constants,
  createServer,
  type Http2Server,
  type Http2Session,
  type IncomingHttpHeaders,
  type ServerHttp2Stream,
} from 'node:http2';
import type { Duplex } from 'node:stream';

import { HeldMessages, messagesOf, writeMessage } from './frames.ts';
import type { Methods } from './service.ts';
import { GrpcError, StatusCode } from './status.ts';
import { trailersOf } from './trailers.ts';

const CONTENT_TYPE = 'application/grpc';
/** Calls of a connection, and of all. */
const [MAX_STREAMS, MAX_CALLS] = [128, 1024];
/** Beyond these the connection is closed; memory in MB is that of frames which wait for the client. */
const FLOOD_LIMITS = {
  maxSessionMemory: 4,
  maxSessionInvalidFrames: 100,
  maxSessionRejectedStreams: 100,
  streamResetBurst: 200,
  streamResetRate: 33,
};
/** A client that goes on sending behind its answer is cut off. */
const MAX_REST_MS = 10_000;
/** Bytes that a client may send before they are read. */
const WINDOW_BYTES = 1024 * 1024;

/** Serves methods of gRPC on connections that are given to it. */
export class GrpcServer {
  readonly #http: Http2Server;
  readonly #methods: Methods;
  readonly #clients = new WeakMap<Http2Session, string | undefined>();
  #calls = 0;
  readonly #toStatus: (error: unknown) => GrpcError;
  readonly #headers: () => Record<string, string>;

  /** `toStatus`: the status of a failure for the client. `headers`: further ones of each answer. */
  constructor(
    methods: Methods,
    toStatus: (error: unknown) => GrpcError,
    headers: () => Record<string, string> = () => ({}),
  ) {
    this.#methods = methods;
    this.#toStatus = toStatus;
    this.#headers = headers;
    const settings = { maxConcurrentStreams: MAX_STREAMS, initialWindowSize: WINDOW_BYTES };
    this.#http = createServer({ settings, ...FLOOD_LIMITS });
    this.#http.on('stream', (stream, headers) => void this.#serve(stream as ServerHttp2Stream, headers));
    this.#http.on('sessionError', () => undefined); // the connection is closed, and its streams are aborted
  }

  /** A connection whose client speaks HTTP/2 from its first byte. */
  accept(connection: Duplex, client?: string): void {
    const name = (session: Http2Session): void => {
      this.#clients.set(session, client);
      connection.once('end', () => session.close()); // it would stay open behind a client that ends its side alone
    };
    this.#http.on('session', name);
    this.#http.emit('connection', connection); // the session is made now, but for a connection that is closed
    this.#http.off('session', name);
  }

  async #serve(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): Promise<void> {
    stream.on('error', () => stream.destroy());
    if (this.#calls >= MAX_CALLS) return stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM);
    this.#calls += 1;
    stream.once('close', () => (this.#calls -= 1));
    const type = headers['content-type'] ?? '';
    if (headers[':method'] !== 'POST' || !type.startsWith(CONTENT_TYPE)) {
      stream.respond({ ':status': 415 }, { endStream: true });
      return;
    }
    const head = { ':status': 200, 'content-type': CONTENT_TYPE, ...this.#headers() };
    stream.respond(head, { waitForTrailers: true });
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
    const client = stream.session && this.#clients.get(stream.session);
    const answer = method(noted(messages, held), { headers, client, signal: gone.signal });
    for await (const message of answer) await writeMessage(stream, message);
  }
}

async function* noted(messages: AsyncIterable<Buffer>, held: HeldMessages): AsyncGenerator<Buffer> {
  for await (const message of messages) {
    held.add(message);
    yield message;
    held.release(); // the method asks for the next one
  }
}
