import type { Exchange } from './exchange.ts';
import type { Body } from './forward.ts';
import { bodyOf } from './request-body.ts';
import { isMetered } from './upgrades/graphql-socket.ts';

export type ReadGraphql = Readonly<{ points: number; body: Body }>;

/** Without a query they ask for nothing; what else a server makes of another method nobody knows. */
const READS = new Set(['GET', 'HEAD', 'OPTIONS']);

/** Bodies that are held at once, so that slow clients cannot fill the memory with them. */
const MOST_HELD = 1000;
/** Pieces of a body that are kept as they came; a client may send a byte at a time. */
const MOST_PIECES = 32;

/** What a GraphQL request costs, where its head says so already. */
export function pointsByHead(exchange: Exchange, scanBytes: number): number | undefined {
  const { req, target, gateway, upgrade, policy } = exchange;
  const { query } = target;
  const cost = policy.graphqlCost;
  // What will be sent over another protocol cannot be read, or costs when it is sent.
  if (upgrade !== undefined) return isMetered(exchange) ? cost.least : cost.unread;
  if (req.method !== 'POST') return READS.has(req.method ?? '') && query.length <= 1 ? cost.query : cost.unread;
  const tooLong = Number(req.headers['content-length'] ?? 0) > scanBytes;
  const encoded = req.headers['content-encoding'] !== undefined;
  return tooLong || encoded || query.length > 1 || gateway.graphqlBodies >= MOST_HELD ? cost.unread : undefined;
}

/**
 * Reads as much of a GraphQL request as is needed to know what it costs; the body can still be passed on whole.
 * Undefined: the client has gone while it was sending.
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
  const { req, policy } = exchange;
  const { promise, resolve } = Promise.withResolvers<ReadGraphql | undefined>();
  let pieces: Buffer[] = [];
  let size = 0;
  const onData = (piece: Buffer): void => {
    pieces.push(piece);
    size += piece.length;
    if (size > scanBytes) resolve({ points: policy.graphqlCost.unread, body: bodyOf(exchange, pieces) });
    else if (pieces.length > MOST_PIECES) pieces = [Buffer.concat(pieces)];
  };
  const onEnd = (): void => {
    const body = pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces);
    resolve({ points: policy.graphqlCost.ofBody(req.headers['content-type'], body), body });
  };
  const onClose = (): void => resolve(undefined);
  req.on('data', onData).once('end', onEnd).once('close', onClose);
  // Listeners are taken away before anything else comes: the body that is passed on has paused what it will pass on itself.
  const read = await promise;
  req.off('data', onData).off('end', onEnd).off('close', onClose);
  return read;
}
