import { isUtf8 } from 'node:buffer';
import { createHash } from 'node:crypto';
import { Duplex } from 'node:stream';

import { EngineError } from '../../lib/errors.ts';
import { headerLines } from '../headers.ts';
import type { Reply } from '../reply.ts';
import type { ApiRequest } from '../request.ts';
import { isBelow } from '../versions/api-version.ts';
import { FrameDecoder } from './frames.ts';
import { takeOver } from './hijack.ts';
import { encodeMessage, GOING, MessageDecoder, PROTOCOL_ERROR } from './websocket-frames.ts';

const GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';

/** Reads the handshake of RFC 6455; the result answers it, and returns the client's stream. Throws `invalid`. */
export function prepareWebSocket(request: ApiRequest, reply: Reply): () => Duplex {
  const { headers } = request;
  const key = headers['sec-websocket-key'];
  const asks = headers.upgrade?.toLowerCase() === 'websocket' && /\bupgrade\b/i.test(headers.connection ?? '');
  if (!asks || key === undefined) throw new EngineError('invalid', 'not websocket protocol');
  if (headers['sec-websocket-version'] !== '13' || Buffer.from(key, 'base64').length !== 16) {
    throw new EngineError('invalid', 'websocket: version 13 and a key of 16 bytes are expected');
  }
  const accept = createHash('sha1').update(`${key}${GUID}`).digest('base64');
  const upgrade = ['HTTP/1.1 101 Switching Protocols', 'Upgrade: websocket', 'Connection: Upgrade'];
  const head = [...upgrade, `Sec-WebSocket-Accept: ${accept}`, ...headerLines(reply.getHeaders()), '', ''];
  const isBinary = !isBelow(request.apiVersion, '1.28');
  return () => new WebSocketStream(takeOver(request, reply, head.join('\r\n')), isBinary);
}

/** For a stream in 8-byte frames whose reader wants the bare bytes. */
export function withoutFrames(client: Duplex): Duplex {
  return new Unframed(client);
}

/**
 * A websocket as a stream of bytes.
 *
 * Clients from 1.28 on get binary messages. Like dockerd it sends text to older ones, so that a browser's terminal can
 * show it, but only where the bytes are whole characters: a browser closes the connection on anything else.
 */
class WebSocketStream extends Duplex {
  readonly #socket: Duplex;
  readonly #isBinary: boolean;
  readonly #decoder: MessageDecoder;
  /** The beginning of a character whose other bytes have not come. */
  #half: Buffer = Buffer.alloc(0);
  /** The payload of the last ping without an answer. */
  #ping: Buffer | undefined;
  #isAnswering = false;

  constructor(socket: Duplex, isBinary: boolean) {
    super({ allowHalfOpen: true });
    this.#socket = socket;
    this.#isBinary = isBinary;
    this.#decoder = new MessageDecoder({
      onData: (bytes) => {
        if (!this.push(bytes)) socket.pause();
      },
      onPing: (payload) => {
        this.#ping = payload;
        if (!this.#isAnswering) this.#pong();
      },
      onClose: () => this.push(null),
    });
    socket.on('data', (chunk: Buffer) => this.#receive(chunk));
    if (socket.readableEnded) this.push(null);
    socket.on('end', () => this.push(null));
    socket.on('error', () => this.destroy());
    socket.on('close', () => this.destroy());
  }

  override _read(): void {
    this.#socket.resume();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    const bytes = this.#half.length === 0 ? chunk : Buffer.concat([this.#half, chunk]);
    const whole = bytes.length - danglingBytes(bytes);
    const isText = !this.#isBinary && isUtf8(bytes.subarray(0, whole));
    this.#half = isText ? Buffer.from(bytes.subarray(whole)) : Buffer.alloc(0);
    const sent = isText ? bytes.subarray(0, whole) : bytes;
    if (sent.length === 0 || this.#send(isText ? 'text' : 'binary', sent)) done();
    else this.#whenWritable(done);
  }

  override _final(done: () => void): void {
    if (this.#half.length > 0) this.#send('binary', this.#half);
    if (!this.#socket.destroyed) this.#socket.end(encodeMessage('close', GOING));
    this.#socket.resume(); // the client's own close
    done();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#socket.destroy();
    done(error);
  }

  #receive(chunk: Buffer): void {
    if (this.#decoder.push(chunk)) return;
    this.#socket.removeAllListeners('data').resume();
    this.#socket.end(encodeMessage('close', PROTOCOL_ERROR));
    this.push(null);
  }

  /** One at a time: of several pings only the last one needs an answer, and a client may not read. */
  #pong(): void {
    const payload = this.#ping;
    this.#ping = undefined;
    this.#isAnswering = payload !== undefined && this.#socket.writable;
    if (payload !== undefined && this.#isAnswering)
      this.#socket.write(encodeMessage('pong', payload), () => this.#pong());
  }

  #send(kind: 'text' | 'binary', bytes: Buffer): boolean {
    return this.#socket.destroyed || this.#socket.write(encodeMessage(kind, bytes));
  }

  #whenWritable(done: () => void): void {
    const settle = (): void => {
      this.#socket.off('drain', settle).off('close', settle);
      done();
    };
    this.#socket.on('drain', settle).on('close', settle);
  }
}

/** Writes go through a decoder of 8-byte frames; reads are the other side's. */
class Unframed extends Duplex {
  readonly #client: Duplex;
  readonly #decoder: FrameDecoder;
  #room = true;

  constructor(client: Duplex) {
    super({ allowHalfOpen: true });
    this.#client = client;
    this.#decoder = new FrameDecoder((_type, payload) => {
      this.#room = client.write(payload);
    });
    client.on('data', (chunk: Buffer) => {
      if (!this.push(chunk)) client.pause();
    });
    client.on('end', () => this.push(null));
    client.on('error', () => this.destroy());
    client.on('close', () => this.destroy());
    client.pause();
  }

  override _read(): void {
    this.#client.resume();
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.#decoder.push(chunk);
    if (this.#room || this.#client.destroyed) done();
    else this.#client.once('drain', done);
  }

  override _final(done: () => void): void {
    this.#client.end();
    done();
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#client.destroy();
    done(error);
  }
}

/** How many bytes at the end are the beginning of a character of UTF-8. */
function danglingBytes(bytes: Buffer): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back += 1) {
    const byte = bytes[bytes.length - back]!;
    if ((byte & 0xc0) === 0x80) continue;
    const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    return length > back ? back : 0;
  }
  return 0;
}
