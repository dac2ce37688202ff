import { graphqlKind } from '../routes/graphql.ts';
import type { Exchange } from './exchange.ts';
import type { Body } from './forward.ts';
import { bodyOf } from './request-body.ts';

export type ReadGraphql = Readonly<{ kind: 'query' | 'mutation'; body: Body }>;

/** Without a query they ask for nothing; what else a server makes of another method nobody knows. */
const READS = new Set(['GET', 'HEAD', 'OPTIONS']);

/** Bodies that are held at once, so that slow clients cannot fill the memory with them. */
const MOST_HELD = 1000;
/** Pieces of a body that are kept as they came; a client may send a byte at a time. */
const MOST_PIECES = 32;

/** What a GraphQL request is, where its head says so already. */
export function kindByHead(
  { req, target, gateway, upgrade }: Exchange,
  scanBytes: number,
): ReadGraphql['kind'] | undefined {
  const { query } = target;
  if (upgrade !== undefined) return 'mutation'; // what will be sent over another protocol cannot be read
  if (req.method !== 'POST') return READS.has(req.method ?? '') && query.length <= 1 ? 'query' : 'mutation';
  const tooLong = Number(req.headers['content-length'] ?? 0) > scanBytes;
  const encoded = req.headers['content-encoding'] !== undefined;
  return tooLong || encoded || query.length > 1 || gateway.graphqlBodies >= MOST_HELD ? 'mutation' : undefined;
}

/**
 * Reads as much of a GraphQL request as is needed to tell a query from a mutation; the body can still be passed on
 * whole. Undefined: the client has gone while it was sending.
 */
export async function readGraphql(exchange: Exchange, scanBytes: number): Promise<ReadGraphql | undefined> {
  const { gateway } = exchange;
  gateway.graphqlBodies += 1;
  try {
    return await scan(exchange, scanBytes);
  } finally {
    gateway.graphqlBodies -= 1;
  }
}

async function scan(exchange: Exchange, scanBytes: number): Promise<ReadGraphql | undefined> {
  const { req } = exchange;
  const { promise, resolve } = Promise.withResolvers<ReadGraphql | undefined>();
  let pieces: Buffer[] = [];
  let size = 0;
  const onData = (piece: Buffer): void => {
    pieces.push(piece);
    size += piece.length;
    if (size > scanBytes) resolve({ kind: 'mutation', body: bodyOf(exchange, pieces) });
    else if (pieces.length > MOST_PIECES) pieces = [Buffer.concat(pieces)];
  };
  const onEnd = (): void => {
    const body = pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces);
    resolve({ kind: graphqlKind(req.headers['content-type'], body), body });
  };
  const onClose = (): void => resolve(undefined);
  req.on('data', onData).once('end', onEnd).once('close', onClose);
  // Listeners are taken away before anything else comes: the body that is passed on has paused what it will pass on itself.
  const read = await promise;
  req.off('data', onData).off('end', onEnd).off('close', onClose);
  return read;
}
