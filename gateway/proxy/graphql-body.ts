import type { Exchange } from './exchange.ts';
import type { Body } from './forward.ts';
import { bodyOf } from './request-body.ts';
import { isMetered } from './upgrades/graphql-socket.ts';

export type ReadGraphql = Readonly<{ points: number; body: Body }>;

/** Methods with which a GraphQL request without a query string starts no operation. */
const READS = new Set(['GET', 'HEAD', 'OPTIONS']);

/** Bodies that are buffered at once, so that slow clients cannot fill the memory. */
const MOST_HELD = 1000;
/** Chunks of a body that are kept as received; a client may send one byte at a time. */
const MOST_PIECES = 32;

/** The cost of a GraphQL request, when its head alone decides it. */
export function pointsByHead(exchange: Exchange, scanBytes: number): number | undefined {
  const { req, target, gateway, upgrade, policy } = exchange;
  const { query } = target;
  const cost = policy.graphqlCost;
  // Operations over a WebSocket are charged when they are sent, or cannot be read.
  if (upgrade !== undefined) return isMetered(exchange) ? cost.least : cost.unread;
  if (req.method !== 'POST') return READS.has(req.method ?? '') && query.length <= 1 ? cost.query : cost.unread;
  const tooLong = Number(req.headers['content-length'] ?? 0) > scanBytes;
  const encoded = req.headers['content-encoding'] !== undefined;
  return tooLong || encoded || query.length > 1 || gateway.graphqlBodies >= MOST_HELD ? cost.unread : undefined;
}

/**
 * Reads as much of a GraphQL request as its cost depends on. The whole body can still be forwarded.
 * Returns undefined when the client has gone.
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
  // The listeners are removed before more data arrives; the forwarded body continues from here.
  const read = await promise;
  req.off('data', onData).off('end', onEnd).off('close', onClose);
  return read;
}
