import { MAX_SCAN_BYTES } from '../../routes/graphql-cost.ts';
import type { Exchange } from '../exchange.ts';
import { hasBody } from '../headers/headers.ts';
import { isMetered } from '../upgrades/graphql-socket.ts';
import { awaitBody } from './await-body.ts';
import { HeldBody } from './held-body.ts';

export type ReadGraphql = Readonly<{ points: number; body: HeldBody }>;

/** Methods with which a GraphQL request without a query string starts no operation. */
const READS = new Set(['GET', 'HEAD', 'OPTIONS']);

/** The cost of a GraphQL request, when its head alone decides it. */
export function pointsByHead(exchange: Exchange): number | undefined {
  const { req, target, upgrade, policy } = exchange;
  const { query } = target;
  const cost = policy.graphqlCost;
  // Operations over a WebSocket are charged when they are sent, or cannot be read.
  if (upgrade !== undefined) return isMetered(exchange) ? cost.least : cost.unread;
  if (req.method !== 'POST') return READS.has(req.method ?? '') && query.length <= 1 ? cost.query : cost.unread;
  const tooLong = Number(req.headers['content-length'] ?? 0) > MAX_SCAN_BYTES;
  const encoded = req.headers['content-encoding'] !== undefined;
  return tooLong || encoded || query.length > 1 || !hasBody(req) ? cost.unread : undefined;
}

/**
 * Reads as much of a GraphQL request as its cost depends on. The whole body can still be forwarded.
 * Returns undefined when the client has gone.
 */
export async function readGraphql(exchange: Exchange): Promise<ReadGraphql | undefined> {
  const { req, gateway, policy } = exchange;
  const body = new HeldBody(gateway.graphqlBytes);
  if (!(await awaitBody(exchange, body, MAX_SCAN_BYTES))) return undefined;
  const isReadable = body.isWhole && body.isInMemory;
  const cost = policy.graphqlCost;
  return { points: isReadable ? cost.ofBody(req.headers['content-type'], body.buffer) : cost.unread, body };
}
