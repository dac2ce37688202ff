import { refusalOf } from '@gantry/limiter/present.ts';
import type { Refusal } from '@gantry/limiter/types.ts';

import { countAnswer } from '../metrics.ts';
import { endDecision, type Exchange } from './exchange.ts';
import { settleCost } from './headers/answer-cost.ts';
import { pushCorsHeaders } from './headers/cors.ts';
import { pushRateHeaders } from './headers/headers.ts';

/** Names an admitted request whose end its proxy reports. */
export const TOKEN_HEADER = 'x-gantry-decision';
/** The body once more, for proxies that pass on nothing of an answer but its headers: nginx. */
export const BODY_HEADER = 'x-gantry-body';

type Message = Readonly<{ status: number; statusText?: string; body: string }>;
type OwnAnswer = Message & Readonly<{ headers?: readonly string[] }>;

/** An answer of the gateway itself, in the same form as the upstream's: JSON, with the headers of the rate limit. */
export function answer(exchange: Exchange, own: OwnAnswer): void {
  const { res, gateway, decision } = exchange;
  if (own.status >= 500) settleCost(exchange, own.status);
  endDecision(exchange);
  if (res.headersSent || res.destroyed) {
    res.destroy();
    return;
  }
  const headers = [...(own.headers ?? [])];
  if (own.body !== '') headers.push('content-type', 'application/json; charset=utf-8');
  const shown = decision ?? exchange.shown;
  if (shown !== undefined) pushRateHeaders(headers, shown);
  writeOwn(exchange, own, headers);
  countAnswer(gateway.counts.ownAnswers, own.status);
}

export function answerMessage(
  exchange: Exchange,
  status: number,
  message: string,
  headers: readonly string[] = [],
): void {
  answer(exchange, { status, headers, body: JSON.stringify({ message }) });
}

/** An unexpected error is a bug: 500, logged once, and the request no longer counts as under way. */
export function answerBug(exchange: Exchange, error: unknown): void {
  exchange.gateway.log.bug(error);
  answerMessage(exchange, 500, 'The gateway has failed.');
}

/** Answers with a refusal in the form that clients know. */
export function answerRefusal(exchange: Exchange, refusal: Refusal): void {
  const response = refusalOf(refusal, exchange.policy.refusal);
  const headers: string[] = [];
  for (const name in response.headers) headers.push(name, response.headers[name]!);
  writeOwn(exchange, response, headers);
  countAnswer(exchange.gateway.counts.ownAnswers, response.status);
}

/** The decision about a request that a proxy forwards itself: 200, with the headers of the limits for the client. */
export function answerQuestion(exchange: Exchange, { endSeconds }: NonNullable<Exchange['question']>): void {
  const { gateway, decision } = exchange;
  if (endSeconds === undefined || decision?.allowed !== true) return answer(exchange, { status: 200, body: '' });
  const token = gateway.openDecisions.hold(decision, endSeconds);
  if (token === undefined) return answerMessage(exchange, 503, 'Too many requests wait for their end.');
  exchange.shown = decision;
  exchange.decision = undefined; // it goes on without this answer
  answer(exchange, { status: 200, headers: [TOKEN_HEADER, token], body: '' });
}

function writeOwn(exchange: Exchange, own: Message, headers: string[]): void {
  const { res, gateway, connection, upgrade, expectsContinue, question } = exchange;
  if (question !== undefined && own.body !== '') headers.push(BODY_HEADER, toAscii(own.body));
  pushCorsHeaders(headers, exchange);
  const closes = upgrade !== undefined || expectsContinue || gateway.draining || connection.ending;
  if (closes) headers.push('connection', 'close');
  const hasBody = own.status !== 304 && own.status !== 204;
  if (hasBody) headers.push('content-length', String(Buffer.byteLength(own.body)));
  // An undefined reason phrase is the status's own.
  if (own.statusText === undefined) res.writeHead(own.status, headers);
  else res.writeHead(own.status, own.statusText, headers);
  res.end(hasBody ? own.body : undefined); // without it where the client has asked by HEAD
}

/** JSON as a header may have it. */
function toAscii(json: string): string {
  return json.replaceAll(/[^\x20-\x7e]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
}
