import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';

import createRouter from 'find-my-way';
import type { Logger } from 'pino';

import type { Engine } from '../engine.ts';
import { EngineError } from '../lib/errors.ts';
import type { Authorization } from '../plugins/authorization.ts';
import { admitByPlugins, releaseByPlugins, type SeenByPlugins } from './authorize.ts';
import { ENDPOINTS, type Endpoint } from './description/endpoints.ts';
import { answerError, logUnexpected, refuse } from './errors.ts';
import { answerHeaders, engineHeaders, type Headers } from './headers.ts';
import { refusalOf } from './listening/origins.ts';
import type { PendingRequests } from './listening/pending-requests.ts';
import type { TcpLimits } from './listening/tcp-limits.ts';
import { refuseChanges } from './read-only.ts';
import { Reply } from './reply.ts';
import type { ApiRequest } from './request.ts';
import { rewriteUrl, UNCLEAN, UNSUPPORTED } from './rewrite.ts';
import { completeRoutes, type AddRoutes, type ServedRoute } from './route-table.ts';
import { dropRawBody, readRouteBody } from './streams/body.ts';
import { clientGone } from './streams/client-gone.ts';
import { dropUnread } from './streams/unread-body.ts';
import { RouteValidator } from './values/validators.ts';
import { readBody, readQuery } from './values/values.ts';
import { apiVersionsOf, isBelow, versionOfUrl, versionRefusal, type ApiVersions } from './versions/api-version.ts';
import { downgradeReply, upgradeBody } from './versions/steps.ts';

type Needs = Pick<Engine, 'config'> & { log: Logger; authorization?: Authorization | undefined };
type Served = Readonly<{ route: ServedRoute; validator: RouteValidator }>;
/** A request that passes through the steps: its values are typed one after the other. */
type Incoming = { -readonly [Field in keyof ApiRequest]: ApiRequest[Field] } & {
  validator: RouteValidator | undefined;
};

const MAX_NAME_LENGTH = 64 * 1024; // more than the head of a request may have
/** The router's answer to a path that it cannot decode. */
const UNREADABLE = null;

/** All routes behind one request listener; `listening/listeners.ts` opens the sockets. */
export function buildServer(
  engine: Needs,
  domains: readonly AddRoutes[],
  pending: PendingRequests,
  limits: TcpLimits | undefined,
  endpoints: readonly Endpoint[] = ENDPOINTS,
): RequestListener {
  const server = new ApiServer(engine, completeRoutes(domains, endpoints), pending, limits);
  return (raw, response) => void server.serve(raw, response);
}

/** Serves a request from its head to its answer; README.md lists the steps. */
class ApiServer {
  readonly #engine: Needs;
  readonly #versions: ApiVersions;
  readonly #headers: Headers;
  readonly #pending: PendingRequests;
  readonly #limits: TcpLimits | undefined;
  readonly #router = createRouter({ maxParamLength: MAX_NAME_LENGTH, onBadUrl: () => undefined });

  constructor(engine: Needs, routes: readonly ServedRoute[], pending: PendingRequests, limits: TcpLimits | undefined) {
    this.#engine = engine;
    this.#versions = apiVersionsOf(engine.config);
    this.#headers = engineHeaders(this.#versions.max);
    this.#pending = pending;
    this.#limits = limits;
    for (const route of routes) {
      const served: Served = { route, validator: new RouteValidator(route.schema) };
      this.#router.on(route.method, route.url, () => undefined, served);
    }
  }

  async serve(raw: IncomingMessage, response: ServerResponse): Promise<void> {
    const started = performance.now();
    const reply = new Reply(response);
    const [request, problem] = this.#read(raw);
    response.once('finish', () => this.#finished(request, response, started));
    let seen: SeenByPlugins | undefined;
    try {
      if (await this.#isAdmitted(request, reply, problem)) {
        if (request.route?.schema.body !== undefined) request.body = await readRouteBody(raw);
        seen = await this.#admitByPlugins(request, response);
        dropRawBody(raw);
        await this.#answer(request, reply);
      }
    } catch (error) {
      answerError(error, request, reply);
    }
    if (reply.isTakenOver) return;
    try {
      if (seen !== undefined) await releaseByPlugins(this.#engine.authorization!, seen, request, reply);
      reply.write();
    } catch (error) {
      logUnexpected(error, request);
      response.destroy();
    }
  }

  /** The request with its route, or the reason why it has none. */
  #read(raw: IncomingMessage): [Incoming, EngineError | undefined] {
    const { method = 'GET' } = raw;
    const originalUrl = withoutOrigin(raw.url ?? '/');
    const url = rewriteUrl(method, originalUrl, this.#versions);
    const found = this.#router.find(method as 'GET', url);
    const served = (found?.store ?? undefined) as Served | undefined;
    const request: Incoming = {
      raw,
      method,
      originalUrl,
      url,
      headers: raw.headers,
      apiVersion: versionOfUrl(originalUrl, this.#versions),
      route: served?.route,
      params: found?.params ?? {},
      query: found?.searchParams ?? {},
      body: undefined,
      log: this.#engine.log,
      validator: served?.validator,
    };
    const [path] = url.split('?');
    if (found?.store === UNREADABLE)
      return [request, new EngineError('invalid', `'${path}' is not a valid url component`)];
    return [request, undefined];
  }

  /** False: answered without its route. Throws the refusal. */
  async #isAdmitted(request: Incoming, reply: Reply, problem: EngineError | undefined): Promise<boolean> {
    const { raw, method, route } = request;
    const { config } = this.#engine;
    if (route?.endpoint?.lasts !== true) this.#pending.add(reply.raw);
    reply.headers(answerHeaders(this.#headers, config.apiCorsHeader));
    const refusal = refusalOf(raw, config.apiCorsHeader);
    if (refusal !== undefined) throw refusal;
    refuseChanges(request);
    // Paths without a route count as one endpoint, because there is no limit to their number.
    const counted = problem === undefined ? `${method} ${route?.url ?? '*'}` : 'unreadable';
    if ((await this.#limits?.admit(request, reply, counted)) === false) return false;
    if (problem !== undefined) throw problem;
    if (method === 'OPTIONS') return false; // on any path: a browser asks before it sends the request itself
    if (route !== undefined) checkVersion(request, route);
    return true;
  }

  async #admitByPlugins(request: ApiRequest, response: ServerResponse): Promise<SeenByPlugins | undefined> {
    const { authorization } = this.#engine;
    if (authorization === undefined) return undefined;
    return await admitByPlugins(authorization, request, clientGone(response));
  }

  async #answer(request: Incoming, reply: Reply): Promise<void> {
    const { route, validator } = request;
    if (route === undefined) return this.#answerWithoutRoute(request, reply);
    const { querystring, body } = route.schema;
    if (querystring !== undefined) request.query = readQuery(querystring, request.query as Record<string, unknown>);
    if (request.body === undefined && route.config.needsBody === true) {
      throw new EngineError('invalid', 'the request has no body');
    }
    if (body !== undefined) request.body = readBody(body, request.body);
    validator?.check(request);
    request.body = upgradeBody(route.config.steps, request);
    const answer = await route.handler(request, reply);
    if (reply.isTakenOver) return;
    if (!reply.isSent) reply.send(answer);
    downgradeReply(route.config.steps, request, reply);
  }

  #answerWithoutRoute({ url }: ApiRequest, reply: Reply): void {
    if (url.startsWith(UNCLEAN)) return void reply.code(301).headers({ location: url.slice(UNCLEAN.length) });
    if (!url.startsWith(UNSUPPORTED)) throw new EngineError('notFound', 'page not found');
    const [written = ''] = url.slice(UNSUPPORTED.length).split('?');
    refuse(reply.code(400), versionRefusal(written, this.#versions), false);
  }

  #finished({ raw, method, originalUrl }: ApiRequest, { statusCode }: ServerResponse, started: number): void {
    const [path] = originalUrl.split('?'); // builds have secrets in the query
    const milliseconds = Math.round(performance.now() - started);
    this.#engine.log.debug({ method, path, status: statusCode, milliseconds }, 'answered');
    dropUnread(raw);
  }
}

/** A client behind a proxy writes the whole address. */
function withoutOrigin(url: string): string {
  return /^https?:/i.test(url) ? url.replace(/^https?:\/\/[^/?#]*\/?/i, '/') : url;
}

/** Older clients get dockerd's message. */
function checkVersion({ apiVersion }: ApiRequest, { endpoint }: ServedRoute): void {
  if (endpoint?.since === undefined || endpoint.isAskedBefore === true || !isBelow(apiVersion, endpoint.since)) return;
  const { method, since } = endpoint;
  const path = endpoint.path.replaceAll(/[{}]/g, ''); // clients show it as it is
  throw new EngineError('invalid', `${method} ${path} requires minimum API version ${since}`);
}
