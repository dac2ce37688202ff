import { once } from 'node:events';
import {
  createServer,
  type Http2Server,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2';

/** Codes of gRPC. */
export type StatusCode = 3 | 7 | 8 | 12 | 13;
const OK_CODE = 0;
const UNIMPLEMENTED = 12;
const INTERNAL = 13;
const RESOURCE_EXHAUSTED = 8;
const INVALID_ARGUMENT = 3;
const PERMISSION_DENIED = 7;

/** Flag of compression and length of the message. */
const PREFIX_BYTES = 5;
/** A question has a few descriptors with a few short texts. */
const MAX_MESSAGE_BYTES = 65_536;
const MAX_STREAMS = 1000;
/** Envoy asks on few connections. */
const MAX_SESSIONS = 1000;
/** Connections of addresses that may not ask: they take no place of those that may. */
const MAX_STRANGERS = 100;
/** A question that does not arrive whole is given up. */
const MESSAGE_TIMEOUT_MS = 10_000;
const CLOSE_TIMEOUT_MS = 2000;

/** A call that cannot be answered, for the client's eyes. */
export class GrpcError extends Error {
  override readonly name = 'GrpcError';
  readonly code: StatusCode;

  constructor(code: StatusCode, message: string) {
    super(message);
    this.code = code;
  }
}

export type Method = Readonly<{
  path: string;
  mayCall: (address: string) => boolean;
  /** Rejects with a `GrpcError` what its client has done wrong. */
  answer: (message: Buffer) => Promise<Buffer>;
  reportBug: (error: unknown) => void;
}>;

/** A server of gRPC with one method that has one message in each direction. */
export class GrpcServer implements AsyncDisposable {
  readonly server: Http2Server;
  readonly #sessions = new Set<ServerHttp2Session>();
  #strangers = 0;

  constructor(method: Method) {
    this.server = createServer({ settings: { maxConcurrentStreams: MAX_STREAMS, enablePush: false } });
    this.server.on('session', (session) => {
      const isStranger = !method.mayCall(session.socket.remoteAddress ?? '');
      const others = this.#sessions.size - this.#strangers;
      if (isStranger ? this.#strangers >= MAX_STRANGERS : others >= MAX_SESSIONS) return session.destroy();
      this.#sessions.add(session);
      if (isStranger) this.#strangers += 1;
      session.once('close', () => {
        this.#sessions.delete(session);
        if (isStranger) this.#strangers -= 1;
      });
      session.on('error', () => session.destroy());
    });
    this.server.on('sessionError', () => undefined); // its session is destroyed
    this.server.on('stream', (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => {
      void handle(method, stream, headers);
    });
  }

  /** Answers what was asked before; connections end then. */
  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.server, 'close');
    this.server.close();
    for (const session of this.#sessions) session.close();
    const timer = setTimeout(() => this.#sessions.forEach((session) => session.destroy()), CLOSE_TIMEOUT_MS);
    await closed;
    clearTimeout(timer);
  }
}

async function handle(method: Method, stream: ServerHttp2Stream, headers: IncomingHttpHeaders): Promise<void> {
  stream.on('error', () => stream.destroy());
  stream.setTimeout(MESSAGE_TIMEOUT_MS, () => stream.destroy());
  try {
    const { remoteAddress } = stream.session?.socket ?? {};
    if (remoteAddress === undefined || !method.mayCall(remoteAddress)) {
      throw new GrpcError(PERMISSION_DENIED, 'only proxies of trustProxy may ask');
    }
    if (headers[':method'] !== 'POST' || headers['content-type']?.startsWith('application/grpc') !== true) {
      throw new GrpcError(UNIMPLEMENTED, 'a call of gRPC is expected');
    }
    if (headers[':path'] !== method.path) throw new GrpcError(UNIMPLEMENTED, `there is only ${method.path}`);
    const answer = await method.answer(await messageOf(stream));
    respond(stream, answer);
  } catch (error) {
    if (stream.destroyed) return;
    if (!(error instanceof GrpcError)) method.reportBug(error);
    fail(stream, error instanceof GrpcError ? error : new GrpcError(INTERNAL, 'the gateway has failed'));
  }
}

/** Rejects when the client goes away; its stream is destroyed then. */
async function messageOf(stream: ServerHttp2Stream): Promise<Buffer> {
  const pieces: Buffer[] = [];
  let size = 0;
  const read = stream.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>; // it still has to answer
  for await (const piece of read) {
    size += piece.length;
    if (size > MAX_MESSAGE_BYTES + PREFIX_BYTES) {
      throw new GrpcError(RESOURCE_EXHAUSTED, `a question may have ${MAX_MESSAGE_BYTES} bytes`);
    }
    pieces.push(piece);
  }
  const bytes = Buffer.concat(pieces);
  if (bytes.length < PREFIX_BYTES || bytes.readUInt32BE(1) !== bytes.length - PREFIX_BYTES) {
    throw new GrpcError(INVALID_ARGUMENT, 'one message is expected');
  }
  if (bytes[0] !== 0) throw new GrpcError(UNIMPLEMENTED, 'compressed messages are not supported');
  return bytes.subarray(PREFIX_BYTES);
}

function respond(stream: ServerHttp2Stream, message: Buffer): void {
  if (stream.destroyed) return;
  const prefix = Buffer.alloc(PREFIX_BYTES);
  prefix.writeUInt32BE(message.length, 1);
  stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
  stream.once('wantTrailers', () => stream.sendTrailers({ 'grpc-status': String(OK_CODE) }));
  stream.end(Buffer.concat([prefix, message]));
}

function fail(stream: ServerHttp2Stream, { code, message }: GrpcError): void {
  const text = message.replaceAll(/[^\x20-\x7e]|%/gu, encodeURIComponent);
  const trailers = { 'grpc-status': String(code), 'grpc-message': text };
  stream.respond({ ':status': 200, 'content-type': 'application/grpc', ...trailers }, { endStream: true });
  stream.resume(); // what is left of the question
}
