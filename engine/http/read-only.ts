import type { IncomingMessage } from 'node:http';

import { EngineError } from '../lib/errors.ts';
import type { ApiRequest } from './request.ts';

/** Reads that give their reader the means of a change: tokens to join the cluster, the key of its managers. */
const REVEALING: ReadonlySet<string> = new Set(['GET /swarm', 'GET /swarm/unlockkey']);

const marked = new WeakSet<IncomingMessage>();

/** A request that must change nothing. */
export function markReadOnly(request: IncomingMessage): void {
  marked.add(request);
}

/** Refuses a marked request by its route, however its path is spelled: changes, connections, and tokens for changes. */
export function refuseChanges({ raw, method, route }: ApiRequest): void {
  if (!marked.has(raw)) return;
  const isRead = method === 'GET' || method === 'HEAD';
  const name = route?.endpoint?.name ?? '';
  if (isRead && raw.headers.upgrade === undefined && !REVEALING.has(name)) return;
  throw new EngineError('forbidden', 'this page is read-only: it changes nothing');
}
