import type { IncomingMessage } from 'node:http';

import type { Gateway } from '../gateway.ts';
import { countAnswer } from '../metrics.ts';
import { BODY_HEADER, TOKEN_HEADER } from '../proxy/answer.ts';
import type { ClientResponse } from '../proxy/client-response.ts';
import { peerOf } from '../proxy/connections/peer.ts';
import { handleRequest } from '../proxy/handle.ts';
import { DECIDE_PATH, originalRequest } from './original-request.ts';

const END_PATH = '/end';
const SECONDS_HEADER = 'x-gantry-seconds';
const MAX_END_SECONDS = 3600;

/**
 * A question of a proxy: may this request pass? The request that it is about is handled like one to the gateway itself,
 * but the answer is the decision alone. `/end` reports the end of one.
 */
export function handleQuestion(gateway: Gateway, req: IncomingMessage, res: ClientResponse): void {
  const { trusted } = gateway.policy;
  const peer = peerOf(req);
  if (!trusted.trusts(peer)) {
    gateway.log.foreignQuestion(peer);
    return reply(gateway, res, 403, 'Only proxies of trustProxy may ask for decisions.');
  }
  const { pathname, searchParams } = new URL(`http://gateway${req.url?.startsWith('/') === true ? req.url : '/'}`);
  if (pathname === END_PATH) return endDecision(gateway, req, res);
  const original = originalRequest({ method: req.method ?? 'GET', url: req.url ?? '/', headers: req.headers });
  if (original === undefined) return reply(gateway, res, 404, `There are ${DECIDE_PATH} and ${END_PATH} here.`);
  if ('problem' in original) return reply(gateway, res, 400, original.problem);
  if (!trusted.namesClient(req.headers))
    return reply(gateway, res, 400, `The client's address is expected in ${trusted.header}.`);
  const end = pathname === DECIDE_PATH ? searchParams.get('end') : null;
  const endSeconds = end === null ? undefined : Number(end);
  if (endSeconds !== undefined && !(Number.isInteger(endSeconds) && endSeconds > 0 && endSeconds <= MAX_END_SECONDS))
    return reply(gateway, res, 400, `end is a number of seconds up to ${MAX_END_SECONDS}.`);
  req.method = original.method;
  req.url = original.url;
  handleRequest(gateway, req, res, { question: { endSeconds } });
}

/** nginx writes several upstreams' times as `0.010, 0.200 : -`; all of them are the request's. */
function endDecision(gateway: Gateway, { headers }: IncomingMessage, res: ClientResponse): void {
  const token = String(headers[TOKEN_HEADER] ?? '');
  const times = String(headers[SECONDS_HEADER] ?? '').match(/\d+(?:\.\d+)?/g) ?? [];
  const seconds = times.length === 0 ? undefined : times.reduce((sum, time) => sum + Number(time), 0);
  if (gateway.openDecisions.end(token, seconds)) return reply(gateway, res, 204);
  if (gateway.endElsewhere === undefined) return reply(gateway, res, 404, 'No request is under way with this token.');
  gateway.endElsewhere({ token, seconds });
  reply(gateway, res, 202);
}

function reply({ counts }: Gateway, res: ClientResponse, status: number, message?: string): void {
  countAnswer(counts.ownAnswers, status);
  const body = message === undefined ? '' : JSON.stringify({ message });
  const about = body === '' ? {} : { 'content-type': 'application/json; charset=utf-8', [BODY_HEADER]: body };
  const length = status === 204 ? {} : { 'content-length': body.length };
  res.writeHead(status, { ...about, ...length });
  res.end(body);
}
