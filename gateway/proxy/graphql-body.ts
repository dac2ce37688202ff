import type { IncomingMessage } from 'node:http';

import { graphqlKind } from '../routes/graphql.ts';
import type { Body } from './forward.ts';

export type ReadGraphql = Readonly<{ kind: 'query' | 'mutation'; body: Body }>;

/**
 * Reads as much of a GraphQL request as is needed to tell a query from a mutation; the body can still be passed on
 * whole. Undefined: the client has gone while it was sending.
 */
export async function readGraphql(
  req: IncomingMessage,
  query: string,
  scanBytes: number,
): Promise<ReadGraphql | undefined> {
  if (req.method !== 'POST') {
    return { kind: query === '' || query === '?' ? 'query' : 'mutation', body: hasBody(req) ? req : null };
  }
  const length = req.headers['content-length'];
  const tooLong = length !== undefined && Number(length) > scanBytes;
  if (req.headers['content-encoding'] !== undefined || query.length > 1 || tooLong) {
    return { kind: 'mutation', body: hasBody(req) ? req : null };
  }
  const chunks: Buffer[] = [];
  let size = 0;
  const pieces = req[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  try {
    for (;;) {
      const { done, value } = await pieces.next();
      if (done === true) break;
      chunks.push(value);
      size += value.length;
      if (size > scanBytes) return { kind: 'mutation', body: joined(chunks, pieces) };
    }
  } catch (error) {
    if (req.destroyed) return undefined;
    throw error;
  }
  const body = chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks);
  return { kind: graphqlKind(req.headers['content-type'], body), body };
}

export function hasBody(req: IncomingMessage): boolean {
  const length = req.headers['content-length'];
  return length === undefined ? req.headers['transfer-encoding'] !== undefined : length !== '0';
}

async function* joined(chunks: readonly Buffer[], pieces: AsyncIterator<Buffer>): AsyncGenerator<Buffer> {
  yield* chunks;
  for (;;) {
    const { done, value } = await pieces.next();
    if (done === true) return;
    yield value;
  }
}
