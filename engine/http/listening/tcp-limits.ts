import { hash, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage, RequestListener } from 'node:http';

import { credentialIn, tokenOf } from '@gantry/limiter/credentials.ts';
import { RateLimiter } from '@gantry/limiter/limiter.ts';
import { headersOf, refusalOf } from '@gantry/limiter/present.ts';
import { callerFrom, defaultPrimaryLimits, type PrimaryLimits } from '@gantry/limiter/primary.ts';
import { defaultRules, limitRules } from '@gantry/limiter/rules.ts';
import type { Caller, Decision, Endpoint } from '@gantry/limiter/types.ts';

import type { RateLimits } from '../../config/rate-limits.ts';
import type { Reply } from '../reply.ts';
import type { ApiRequest } from '../request.ts';
import { TAKEN_OVER } from './pending-requests.ts';

type Known = Readonly<{ digest: Buffer; caller: Caller }>;

/**
 * The rate limits of clients over TCP, with the headers and errors of the gateway; clients of a Unix socket are not
 * limited.
 *
 * CPU time is not among them: the gateway estimates it by the time of the answer, and here a stop, a build or a wait
 * takes its time without computing.
 */
export class TcpLimits implements AsyncDisposable {
  readonly #limiter = new RateLimiter();
  readonly #endpoints = new Map<string, Endpoint>();
  /** The addresses of requests that came over TCP. */
  readonly #addresses = new WeakMap<IncomingMessage, string>();
  #primary: PrimaryLimits = defaultPrimaryLimits;
  #tokens: ReadonlyMap<string, Known> = new Map();

  constructor(settings: RateLimits) {
    this.use(settings);
  }

  /** Applies new limits and tokens; counts stay. */
  use({ anonymous, user, windowSeconds, concurrent, points, tokens }: RateLimits): void {
    const primary = { ...defaultPrimaryLimits, anonymous, user };
    this.#limiter.changeRules(
      limitRules({
        categories: { core: { limit: 'caller', windowSeconds } },
        concurrent: { ...defaultRules.concurrent, limit: concurrent },
        restPoints: points,
      }),
    );
    this.#primary = primary;
    this.#tokens = new Map(
      tokens.map(({ sha256, user: userId }): [string, Known] => {
        const digest = Buffer.from(sha256, 'hex');
        return [beginningOf(digest), { digest, caller: callerFrom({ kind: 'user', userId }, primary) }];
      }),
    );
  }

  /** Wraps a listener whose requests are limited. */
  overTcp(listener: RequestListener): RequestListener {
    return (request, response) => {
      // Closed connections have no address; their requests share one count.
      this.#addresses.set(request, request.socket.remoteAddress ?? '');
      listener(request, response);
    };
  }

  /**
   * Admits a request, whose answer then carries the headers, or answers it: false. `route` is one of a fixed set, for any
   * path.
   */
  async admit(request: ApiRequest, reply: Reply, route: string): Promise<boolean> {
    const address = this.#addresses.get(request.raw);
    if (address === undefined) return true;
    const caller = this.#callerOf(request.headers.authorization);
    const counted = caller ?? callerFrom({ kind: 'anonymous', address }, this.#primary);
    const decision = await this.#limiter.admit(counted, this.#endpoint(route));
    endWith(request, reply, decision);
    if (!decision.allowed) {
      const { status, statusText, headers, body } = refusalOf(decision);
      if (statusText !== undefined) reply.raw.statusMessage = statusText;
      // Exactly this type, as everywhere in this API.
      reply
        .code(status)
        .headers({ ...headers, 'content-type': 'application/json' })
        .send(body);
      return false;
    }
    reply.headers(headersOf(decision));
    if (caller !== undefined || request.headers.authorization === undefined) return true;
    reply.headers({ 'www-authenticate': 'Bearer realm="api", Basic realm="api"' });
    reply.code(401).send({ message: 'Bad credentials' });
    return false;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#limiter[Symbol.asyncDispose]();
  }

  /** Undefined: no known caller. */
  #callerOf(authorization: string | undefined): Caller | undefined {
    const credential = credentialIn(authorization);
    if (credential.kind !== 'token' && credential.kind !== 'basic') return undefined;
    const token = credential.kind === 'token' ? credential.token : tokenOf(credential);
    const digest = hash('sha256', token, 'buffer');
    const known = this.#tokens.get(beginningOf(digest));
    return known !== undefined && timingSafeEqual(known.digest, digest) ? known.caller : undefined;
  }

  #endpoint(route: string): Endpoint {
    const known = this.#endpoints.get(route);
    if (known !== undefined) return known;
    const endpoint = this.#limiter.endpoint({ name: route });
    this.#endpoints.set(route, endpoint);
    return endpoint;
  }
}

/** The look-up uses the hash, which a client cannot choose; the comparison is in constant time. */
function beginningOf(digest: Buffer): string {
  return digest.toString('hex', 0, 8);
}

/** A request is under way until its answer has ended; one whose connection was taken over, until that is closed. */
function endWith({ raw: { socket } }: ApiRequest, reply: Reply, decision: Decision): void {
  const end = (): void => decision.end(0);
  if (reply.raw.closed) return end(); // it has gone while it waited
  reply.raw.once('close', end).once(TAKEN_OVER, () => (socket.destroyed ? end() : socket.once('close', end)));
}
