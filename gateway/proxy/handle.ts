import type { IncomingMessage } from 'node:http';

import type { Decision, Endpoint } from '@gantry/limiter/types.ts';

import type { Gateway } from '../gateway.ts';
import { identify, Question } from '../identity/identify.ts';
import { withOverride } from '../policy.ts';
import { canonicalTarget, type Target } from '../routes/path.ts';
import type { Route } from '../routes/routes.ts';
import { answerBug, answerMessage, answerQuestion, answerRefusal } from './answer.ts';
import { answerUnavailable, askForge, type Found } from './ask-forge.ts';
import { awaitBody } from './bodies/await-body.ts';
import { pointsByHead, readGraphql } from './bodies/graphql-body.ts';
import { HeldBody } from './bodies/held-body.ts';
import type { ClientResponse } from './client-response.ts';
import { Connection, endLingering, MAX_PARALLEL } from './connections/connection.ts';
import { peerOf } from './connections/peer.ts';
import { endDecision, type Exchange } from './exchange.ts';
import { forward } from './forward.ts';
import { hasBody } from './headers/headers.ts';
import { answerPreflight, isPreflight } from './headers/preflight.ts';
import { problemOf } from './problem.ts';
import { answerRateLimit } from './rate-limit.ts';
import { forwardUpgrade } from './upgrades/upgrade.ts';

/** Requests that wait for earlier ones of their connections: each takes 9 KB, and one connection may hold thousands. */
const MAX_PIPELINED = 5000;

const unread: Target = { path: '/', query: '' };

/**
 * One request from its head to its answer: caller, endpoint, decision; then it is forwarded or answered
 * here. With a store that answers synchronously there is no promise on that path.
 */
export function handleRequest(
  gateway: Gateway,
  req: IncomingMessage,
  res: ClientResponse,
  extra: { expectsContinue?: boolean; upgrade?: Exchange['upgrade']; question?: Exchange['question'] } = {},
): void {
  if (req.socket.destroyed) return; // it was read together with the request for which the connection was closed
  const { policy } = gateway;
  const connection = gateway.connections.get(req.socket) ?? new Connection(req.socket);
  const peer = peerOf(req);
  const address = policy.trusted.clientOf(peer, req.headers);
  if (address === peer && req.headers['x-forwarded-for'] !== undefined) gateway.log.unbelieved(policy, peer);
  const exchange: Exchange = {
    gateway,
    policy,
    req,
    res,
    connection,
    address,
    expectsContinue: extra.expectsContinue ?? false,
    upgrade: extra.upgrade,
    question: extra.question,
    caller: connection.caller(policy, address),
    target: unread,
    decision: undefined,
    shown: undefined,
    body: undefined,
    upload: undefined,
    isDispatched: false,
    closed: false,
    whenClosed: undefined,
  };
  gateway.counts.underWay += 1;
  res.exchange = exchange;
  res.on('close', handleClose);
  if (connection.arrive(exchange)) return start(exchange);
  gateway.pipelined += 1;
  if (gateway.pipelined <= MAX_PIPELINED) return;
  gateway.counts.rejectedConnections += 1;
  req.socket.destroy();
}

function start(exchange: Exchange): void {
  try {
    const later = begin(exchange);
    if (later instanceof Promise) later.catch((error: unknown) => answerBug(exchange, error));
  } catch (error) {
    answerBug(exchange, error);
  }
}

function begin(exchange: Exchange): void | Promise<void> {
  const { policy, req } = exchange;
  const identity = identify(policy, req.headers, req.url ?? '/');
  return identity instanceof Question ? identifiedLater(exchange, identity) : identified(exchange, identity);
}

async function identifiedLater(exchange: Exchange, question: Question): Promise<void> {
  const found = await askForge(exchange, question);
  if (found !== undefined) await identified(exchange, found);
}

function identified(exchange: Exchange, identity: Found): void | Promise<void> {
  const { req, policy } = exchange;
  if (exchange.closed) return; // gone while the identity source was asked
  if (typeof identity === 'object') exchange.caller = withOverride(policy, identity);
  const problem = problemOf(req);
  if (problem !== undefined) return unreadable(exchange, problem.message, problem.status);
  if (identity === 'several') return unreadable(exchange, 'The request has two credentials that differ.');
  const target = readTarget(req.url ?? '/');
  if ('refused' in target) return unreadable(exchange, target.refused);
  exchange.target = target;
  const route = policy.routes.find(req.method ?? 'GET', target);
  if (route.kind === 'unlimited' || isExempt(exchange, identity, route)) return passUnlimited(exchange);
  if (route.kind === 'ambiguous')
    return unreadable(
      exchange,
      'The path is ambiguous: an encoded slash or a semicolon makes it another one to some servers.',
    );
  if (policy.config.cors !== 'off' && isPreflight(req)) {
    const isOwn = policy.config.cors === 'own' && exchange.question === undefined;
    return admit(exchange, policy.routes.preflight, isOwn ? answerPreflight : pass);
  }
  if (identity === 'refused') return admit(exchange, route.endpoint, unauthenticated);
  if (identity === 'unavailable') return admit(exchange, route.endpoint, answerUnavailable);
  const version = policy.versions.problem(req.headers);
  if (version !== undefined) return admit(exchange, route.endpoint, (it) => answerMessage(it, 400, version));
  if (route.kind === 'graphql') return admitGraphql(exchange, route.endpoint);
  const { endpoint } = route;
  const gone = policy.versions.withoutCategories(req.headers).includes(endpoint.category);
  return admit(
    exchange,
    gone ? (endpoint.inCore ?? endpoint) : endpoint,
    route.kind === 'status' && exchange.question === undefined ? answerRateLimit : pass,
  );
}

/** A caller without limits is still told what it has used, and that its token is wrong. */
function isExempt({ policy, caller }: Exchange, identity: Found, { kind }: Route): boolean {
  if (policy.exempt.size === 0 || (kind !== 'rest' && kind !== 'graphql')) return false;
  return identity !== 'refused' && identity !== 'unavailable' && policy.exempt.has(caller.key);
}

/** `http://host/path` is the same request as `/path`: proxies are asked like that. */
function readTarget(url: string): Target | Readonly<{ refused: string }> {
  if (url.startsWith('/')) return canonicalTarget(url);
  const absolute = /^https?:\/\/(?:[^/?#@]*@)?([^/?#@]*)(.*)$/i.exec(url);
  if (absolute === null) return { refused: 'The request target must be a path.' };
  const [, authority = '', rest = ''] = absolute;
  const target = canonicalTarget(rest.startsWith('/') ? rest : `/${rest}`);
  return 'refused' in target || authority === '' ? target : { ...target, authority };
}

/** Counts an invalid request, and answers it with the reason. */
export function unreadable(exchange: Exchange, message: string, status = 400): void | Promise<void> {
  exchange.gateway.counts.unreadable += 1;
  return admit(exchange, exchange.policy.routes.unreadable, (it) => answerMessage(it, status, message));
}

type Step = (exchange: Exchange) => void | Promise<void>;

/** Asks the limiter, and calls `next` when the request may pass. */
function admit(exchange: Exchange, endpoint: Endpoint, next: Step, points?: number): void | Promise<void> {
  const decision = exchange.gateway.limiter.admit(exchange.caller, endpoint, points);
  return decision instanceof Promise
    ? decision.then((decided) => applyDecision(exchange, decided, next))
    : applyDecision(exchange, decision, next);
}

function applyDecision(exchange: Exchange, decision: Decision, next: Step): void | Promise<void> {
  exchange.decision = decision;
  exchange.gateway.topCallers.note(exchange.caller.key, decision.allowed);
  exchange.gateway.nearestCallers.note(decision);
  if (!decision.allowed) {
    exchange.gateway.log.refusal(decision);
    answerRefusal(exchange, decision);
    return;
  }
  if (exchange.closed) return decision.end(0); // gone while the store was asked
  return next(exchange);
}

/**
 * The cost of a GraphQL request is known when its body has arrived. It is admitted before that for the least cost, so it
 * counts as under way while it is sent. A request that costs more is then decided again, for all of its points.
 */
function admitGraphql(exchange: Exchange, endpoint: Endpoint): void | Promise<void> {
  const { graphqlCost } = exchange.policy;
  const known = pointsByHead(exchange);
  if (known !== undefined) return admit(exchange, endpoint, pass, known);
  const { least } = graphqlCost;
  const readAndForward = async (): Promise<void> => {
    const { res, decision } = exchange;
    if (exchange.expectsContinue) res.writeContinue();
    const read = await readGraphql(exchange);
    if (read === undefined) return;
    const { points, body } = read;
    if (points === least || decision?.allowed !== true) return await forwardWith(exchange, body);
    decision.giveBack();
    exchange.decision = undefined;
    return await admit(exchange, endpoint, async (it) => await forwardWith(it, body), points);
  };
  return admit(exchange, endpoint, readAndForward, least);
}

function unauthenticated(exchange: Exchange): void {
  exchange.gateway.counts.unauthenticated += 1;
  answerMessage(exchange, 401, 'Bad credentials', ['www-authenticate', 'Bearer realm="api", Basic realm="api"']);
}

/** A request that is not limited spends nothing, but its answer carries the headers. */
async function passUnlimited(exchange: Exchange): Promise<void> {
  const { core } = await exchange.gateway.limiter.status(exchange.caller);
  if (exchange.closed) return;
  exchange.shown = core;
  return await pass(exchange);
}

function pass(exchange: Exchange): void | Promise<void> {
  const { req, res, gateway, expectsContinue, question } = exchange;
  if (question !== undefined) return answerQuestion(exchange, question);
  if (exchange.upgrade !== undefined) return forwardUpgrade(exchange, exchange.upgrade);
  if (!hasBody(req)) return forward(exchange, undefined);
  if (expectsContinue) res.writeContinue();
  return forwardWith(exchange, new HeldBody(gateway.heldBytes));
}

/** Forwards it when its body is here, or much of it. */
async function forwardWith(exchange: Exchange, body: HeldBody): Promise<void> {
  if (exchange.question !== undefined) return answerQuestion(exchange, exchange.question);
  if (await awaitBody(exchange, body)) forward(exchange, body);
}

function handleClose(this: ClientResponse): void {
  if (this.exchange !== undefined) closeExchange(this.exchange);
}

/** Called once at the end of every request, whatever its outcome. */
export function closeExchange(exchange: Exchange): void {
  if (exchange.closed) return;
  exchange.closed = true;
  const { gateway, connection, res, req, caller, address, target } = exchange;
  if (connection.exchanges.length > MAX_PARALLEL) gateway.pipelined -= 1;
  const next = connection.leave(exchange);
  gateway.counts.underWay -= 1;
  exchange.whenClosed?.clientClosed();
  exchange.upload?.destroy(); // nobody else reads the rest
  exchange.body?.[Symbol.dispose]();
  endDecision(exchange);
  gateway.log.request(req, res, caller, address, target === unread ? undefined : target.path);
  // Draining: the answer was sent without `connection: close`.
  if ((gateway.draining || connection.ending) && connection.exchanges.length === 0) endLingering(connection.socket);
  if (next !== undefined) start(next);
}
