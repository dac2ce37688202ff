import { hash } from 'node:crypto';

import { statusBody } from '@gantry/limiter/present.ts';

import { answer, answerMessage } from './answer.ts';
import type { Exchange } from './exchange.ts';

/** `GET /rate_limit`: every category of the caller. The ETag stays the same while nothing changes. */
export async function answerRateLimit(exchange: Exchange): Promise<void> {
  const { req, policy, gateway, caller } = exchange;
  if (policy.limitsNothing) return answerMessage(exchange, 404, 'Rate limiting is not enabled.');
  const status = await gateway.limiter.status(caller);
  const body = JSON.stringify(statusBody(status, policy.versions.withoutCategories(req.headers)));
  const etag = `"${hash('sha256', body, 'hex').slice(0, 32)}"`;
  const headers = ['etag', etag, 'cache-control', 'private, no-cache', 'vary', 'Authorization'];
  answer(exchange, { status: matches(req.headers['if-none-match'], etag) ? 304 : 200, headers, body });
}

/** Weak comparison, as RFC 9110 wants it for If-None-Match. */
function matches(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false;
  const tags = ifNoneMatch.split(',').map((tag) => tag.trim().replace(/^W\//, ''));
  return tags.includes(etag) || tags.includes('*');
}
