import { randomUUID } from 'node:crypto';
import type { Socket } from 'node:net';

import {
  SolveRequest,
  SolveResponse,
  StatusRequest,
  StatusResponse,
} from '@gantry/engine/buildkit/messages/control.ts';
import { Packet, PacketType, Stat } from '@gantry/engine/buildkit/messages/file-sync.ts';
import { GrpcClient } from '@gantry/engine/buildkit/wire/client.ts';
import type { Message, Received, Sent } from '@gantry/engine/buildkit/wire/message.ts';
import { GrpcServer } from '@gantry/engine/buildkit/wire/server.ts';
import type { Method, Methods } from '@gantry/engine/buildkit/wire/service.ts';
import { GrpcError, StatusCode } from '@gantry/engine/buildkit/wire/status.ts';
import { upgraded } from '@gantry/testing/streams/upgraded.ts';

const CONTROL = '/moby.buildkit.v1.Control/';
const PIECE_BYTES = 32 * 1024;
export const FILE_SYNC = '/moby.filesync.v1.FileSync/DiffCopy';

/** A file or another entry that a client claims to have. */
export type Claimed = Sent<typeof Stat> & Readonly<{ content?: string }>;

/** A client of BuildKit's protocol, upgraded on an engine's socket. */
export async function builderClient(socketPath: string): Promise<GrpcClient> {
  return new GrpcClient(await upgraded(socketPath, '/grpc'));
}

/** A client of BuildKit's protocol whose own side the test writes. */
export class SessionClient {
  readonly #session: string;
  readonly #sockets: readonly Socket[];
  readonly #calls: GrpcClient;
  readonly #signal = new AbortController().signal;

  private constructor(session: string, sockets: readonly [Socket, Socket], served: Methods) {
    this.#session = session;
    this.#sockets = sockets;
    for (const socket of sockets) socket.on('error', () => undefined);
    new GrpcServer(served, (error) =>
      error instanceof GrpcError ? error : new GrpcError(StatusCode.UNKNOWN, String(error)),
    ).accept(sockets[1]);
    this.#calls = new GrpcClient(sockets[0]);
  }

  static async open(socketPath: string, served: Methods): Promise<SessionClient> {
    const id = randomUUID();
    const names = [...served.keys()].map((path) => `X-Docker-Expose-Session-Grpc-Method: ${path}`);
    const session = await upgraded(socketPath, '/session', [`X-Docker-Expose-Session-Uuid: ${id}`, ...names]);
    return new SessionClient(id, [await upgraded(socketPath, '/grpc'), session], served);
  }

  /** Builds by the engine's frontend. */
  async solve(request: Sent<typeof SolveRequest>): Promise<Received<typeof SolveResponse>> {
    const all = { session: this.#session, frontend: 'dockerfile.v0', ...request };
    return await this.#calls.call(`${CONTROL}Solve`, SolveRequest, SolveResponse, all, this.#signal);
  }

  /** Calls the bridge of a build. */
  async bridge<Request, Response>(
    ref: string,
    method: string,
    request: Message<unknown, Request>,
    response: Message<Response, never>,
    value: Request,
  ): Promise<Response> {
    const path = `/moby.buildkit.v1.frontend.LLBBridge/${method}`;
    const headers = { 'buildkit-controlapi-buildid': ref };
    using exchange = this.#calls.exchange(path, request, response, this.#signal, headers);
    await exchange.send(value);
    exchange.end();
    const [answer] = await Array.fromAsync(exchange.responses);
    return answer!;
  }

  /** Waits until a step has written this. */
  async wrote(ref: string, text: string): Promise<void> {
    using progress = this.#calls.exchange(`${CONTROL}Status`, StatusRequest, StatusResponse, this.#signal);
    await progress.send({ ref });
    progress.end();
    let all = '';
    for await (const { logs } of progress.responses) {
      all += logs.map((log) => Buffer.from(log.text).toString()).join('');
      if (all.includes(text)) return;
    }
    throw new Error(`no step wrote ${text}: ${all}`);
  }

  /** Leaves without a word. */
  vanish(): void {
    for (const socket of this.#sockets) socket.destroy();
  }
}

/**
 * Serves a Buildfile and a context. `reach` is awaited at each stage of a transfer: `dockerfile`, `ignore`, `names`, `more names`
 * and `content`.
 */
export function servedFiles(
  file: string,
  context: readonly Claimed[],
  reach: (stage: string) => Promise<void> = async () => undefined,
): Method {
  return async function* serve(requests, { headers }) {
    const isFile = headers['dir-name'] === 'dockerfile';
    const isIgnore = !isFile && headers['followpaths'] !== undefined;
    const buildfile = { path: 'Dockerfile', mode: 0o644, size: file.length, modified: 1n, content: file };
    const entries: readonly Claimed[] = isIgnore ? [] : isFile ? [buildfile] : context;
    await reach(isFile ? 'dockerfile' : isIgnore ? 'ignore' : 'names');
    for (const { content: _content, ...stat } of entries) {
      yield Packet.encode({ type: PacketType.STAT, stat: Stat.encode(stat) });
      if (!isFile) await reach('more names');
    }
    yield Packet.encode({ type: PacketType.STAT });
    for await (const bytes of requests) {
      const { type, id } = Packet.decode(bytes);
      if (type === PacketType.FIN) break;
      const content = Buffer.from(entries[id]!.content ?? '');
      for (let at = 0; at < content.length; at += PIECE_BYTES) {
        yield Packet.encode({ type: PacketType.DATA, id, data: content.subarray(at, at + PIECE_BYTES) });
        if (!isFile) await reach('content');
      }
      yield Packet.encode({ type: PacketType.DATA, id });
    }
    yield Packet.encode({ type: PacketType.FIN });
  };
}
