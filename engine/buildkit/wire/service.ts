import type { IncomingHttpHeaders } from 'node:http';

import type { Message } from './message.ts';

/** A call that a client has made. */
export type Call = Readonly<{
  headers: IncomingHttpHeaders;
  /** A name of the client; undefined if it cannot be told from others. */
  client: string | undefined;
  /** Aborted when the client has left. */
  signal: AbortSignal;
}>;

/** A method of a service: bytes of messages in, bytes of messages out. */
export type Method = (requests: AsyncIterable<Buffer>, call: Call) => AsyncIterable<Uint8Array>;
/** Methods by their paths, such as `/grpc.health.v1.Health/Check`. */
export type Methods = ReadonlyMap<string, Method>;

/** One message in and one out. */
export function unary<Request, Response>(
  request: Message<Request, never>,
  response: Message<unknown, Response>,
  answer: (request: Request, call: Call) => Response | Promise<Response>,
): Method {
  return async function* one(requests, call) {
    yield response.encode(await answer(await firstOf(request, requests), call));
  };
}

/** One message in, and any number out. */
export function streaming<Request, Response>(
  request: Message<Request, never>,
  response: Message<unknown, Response>,
  answer: (request: Request, call: Call) => AsyncIterable<Response>,
): Method {
  return async function* many(requests, call) {
    for await (const each of answer(await firstOf(request, requests), call)) yield response.encode(each);
  };
}

async function firstOf<Request>(request: Message<Request, never>, requests: AsyncIterable<Buffer>): Promise<Request> {
  for await (const bytes of requests) return request.decode(bytes);
  return request.decode(new Uint8Array());
}
