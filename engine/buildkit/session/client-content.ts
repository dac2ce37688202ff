import { sha256 } from '../../layers/chain-id.ts';
import { EngineError } from '../../lib/errors.ts';
import type { Blob } from '../export/packed-image.ts';
import { WriteAction, WriteContentRequest, WriteContentResponse } from '../messages/content.ts';
import { ReadContentRequest, ReadContentResponse } from '../messages/history.ts';
import { GrpcError, StatusCode } from '../wire/status.ts';
import type { Session } from './session.ts';

const SERVICE = '/containerd.services.content.v1.Content/';
const STORE_HEADER = 'buildkit-attachable-store-id';
/** Messages of the client's side have a limit of their own. */
const PIECE_BYTES = 256 * 1024;

/** A folder of a client that holds blobs by their digests, such as that of `--cache-to type=local`. */
export class ClientContent {
  readonly #session: Session;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #signal: AbortSignal;

  /** `store`: its name for the client. Throws `invalid` for one that no header can have. */
  constructor(session: Session, store: string, signal: AbortSignal) {
    if (!/^[\u0020-\u007e]{1,4096}$/.test(store))
      throw new EngineError('invalid', `the folder ${JSON.stringify(store)} has other characters than ASCII`);
    this.#session = session;
    this.#headers = { [STORE_HEADER]: store };
    this.#signal = signal;
  }

  /** The bytes of a blob, without a check of its digest. Throws `failed` for another size. */
  async *read({ digest, size }: Readonly<{ digest: string; size: number }>): AsyncGenerator<Uint8Array> {
    let bytes = 0;
    for await (const piece of this.#pieces(digest, size)) {
      bytes += piece.length;
      yield piece;
    }
    if (bytes !== size) throw new EngineError('failed', `the blob ${digest} has ${bytes} bytes of ${size}`);
  }

  /** A small blob, checked. Throws `failed`. */
  async document(digest: string, maxBytes: number): Promise<Buffer> {
    const pieces = await Array.fromAsync(this.#pieces(digest, maxBytes), (piece) => Buffer.from(piece));
    const bytes = Buffer.concat(pieces);
    if (sha256(bytes) !== digest) throw new EngineError('failed', `the blob ${digest} has another digest`);
    return bytes;
  }

  /** Throws `failed` beyond so many bytes, and if the client lacks it. */
  async *#pieces(digest: string, maxBytes: number): AsyncGenerator<Uint8Array> {
    let bytes = 0;
    try {
      using exchange = this.#session.exchange(
        `${SERVICE}Read`,
        ReadContentRequest,
        ReadContentResponse,
        this.#signal,
        this.#headers,
      );
      await exchange.send({ digest });
      exchange.end();
      for await (const { data } of exchange.responses) {
        bytes += data.length;
        if (bytes > maxBytes) throw new EngineError('failed', `the blob ${digest} has more than ${maxBytes} bytes`);
        yield data;
      }
    } catch (error) {
      this.#signal.throwIfAborted();
      if (!(error instanceof GrpcError)) throw error;
      throw new EngineError('failed', `cannot read ${digest} of the client: ${error.message}`, { cause: error });
    }
  }

  /** Stores a blob, unless the client has it already. */
  async write({ descriptor: { digest, size }, read }: Blob): Promise<void> {
    using exchange = this.#session.exchange(
      `${SERVICE}Write`,
      WriteContentRequest,
      WriteContentResponse,
      this.#signal,
      this.#headers,
    );
    const answers = exchange.responses[Symbol.asyncIterator]();
    const about = { ref: `build-cache-${digest}`, total: size, expected: digest };
    let offset = 0;
    try {
      for await (const piece of read()) {
        for (let at = 0; at < piece.length; at += PIECE_BYTES) {
          const data = piece.subarray(at, at + PIECE_BYTES);
          await exchange.send({ action: WriteAction.WRITE, ...about, offset, data });
          await answers.next();
          offset += data.length;
        }
      }
      await exchange.send({ action: WriteAction.COMMIT, ...about, offset });
      exchange.end();
      while ((await answers.next()).done !== true);
    } catch (error) {
      if (!(error instanceof GrpcError) || error.code !== StatusCode.ALREADY_EXISTS) throw error;
    }
  }
}
