import type { Duplex } from 'node:stream';

import {
  BytesMessage,
  CredentialsRequest,
  CredentialsResponse,
  GetSecretRequest,
  GetSecretResponse,
} from '../messages/session.ts';
import { GrpcClient, type Exchange } from '../wire/client.ts';
import type { Message } from '../wire/message.ts';
import { GrpcError, StatusCode } from '../wire/status.ts';

type Headers = Readonly<Record<string, string | readonly string[]>>;

/** Files, secrets and credentials of a client, which serves them for its builds. */
export class Session {
  readonly id: string;
  /** A name of the client and of its folders: transfers of the same one are alike. Undefined: nothing is kept for it. */
  readonly sharedKey: string | undefined;
  readonly closed: AbortSignal;
  readonly #client: GrpcClient;
  readonly #methods: ReadonlySet<string>;

  /** `methods`: their paths. */
  constructor(
    connection: Duplex,
    given: Readonly<{ id: string; methods: readonly string[]; sharedKey?: string | undefined }>,
  ) {
    this.id = given.id;
    this.sharedKey = given.sharedKey;
    this.#methods = new Set(given.methods.map((path) => path.toLowerCase()));
    this.#client = new GrpcClient(connection);
    this.closed = this.#client.closed;
  }

  close(): void {
    this.#client.close();
  }

  supports(path: string): boolean {
    return this.#methods.has(path.toLowerCase());
  }

  exchange<Request, Response>(
    path: string,
    request: Message<unknown, Request>,
    response: Message<Response, never>,
    signal: AbortSignal,
    headers: Headers = {},
  ): Exchange<Request, Response> {
    if (!this.supports(path))
      throw new GrpcError(StatusCode.UNIMPLEMENTED, `the client does not serve ${path.slice(1)}`);
    return this.#client.exchange(path, request, response, signal, headers);
  }

  /** One message each way, by a method that the client serves. */
  async call<Request, Response>(
    path: string,
    request: Message<unknown, Request>,
    response: Message<Response, never>,
    value: Request,
    signal: AbortSignal,
  ): Promise<Response> {
    return await this.#client.call(path, request, response, value, signal);
  }

  /** Undefined: the client has none. */
  async credentials(host: string, signal: AbortSignal): Promise<{ username: string; secret: string } | undefined> {
    const path = '/moby.filesync.v1.Auth/Credentials';
    if (!this.supports(path)) return undefined;
    return await this.#client.call(path, CredentialsRequest, CredentialsResponse, { host }, signal);
  }

  /** Undefined: the client has none with this id. */
  async secret(id: string, signal: AbortSignal): Promise<Buffer | undefined> {
    const path = '/moby.buildkit.secrets.v1.Secrets/GetSecret';
    if (!this.supports(path)) return undefined;
    try {
      return Buffer.from((await this.#client.call(path, GetSecretRequest, GetSecretResponse, { id }, signal)).data);
    } catch (error) {
      if (error instanceof GrpcError && error.code === StatusCode.NOT_FOUND) return undefined;
      throw error;
    }
  }

  /** An archive that the client sends, under this path. */
  async *upload(path: string, signal: AbortSignal): AsyncGenerator<Uint8Array> {
    const method = '/moby.upload.v1.Upload/Pull';
    using exchange = this.exchange(method, BytesMessage, BytesMessage, signal, { urlpath: path });
    for await (const { data } of exchange.responses) yield data;
  }
}
