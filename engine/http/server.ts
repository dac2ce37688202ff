import { createServer, type RequestListener } from 'node:http';

import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import Fastify, {
  LogController,
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
} from 'fastify';

import type { Engine } from '../engine.ts';
import { EngineError } from '../lib/errors.ts';
import type { Authorization } from '../plugins/authorization.ts';
import { addRoutes } from './add-routes.ts';
import { addAuthorization } from './authorize.ts';
import { ENDPOINTS, type Endpoint } from './endpoints.ts';
import { answerError, answerOutsideOfRoutes, refuse } from './errors.ts';
import { answerHeaders, engineHeaders, type Headers } from './headers.ts';
import { refusalOf } from './listening/origins.ts';
import type { PendingRequests } from './listening/pending-requests.ts';
import type { TcpLimits } from './listening/tcp-limits.ts';
import { rewriteUrl, UNCLEAN, UNSUPPORTED } from './rewrite.ts';
import { addBodyParser } from './streams/body.ts';
import { dropUnread } from './streams/unread-body.ts';
import { lazyValidator } from './values/validators.ts';
import { readBody, readQuery, type ValueSchema } from './values/values.ts';
import {
  apiVersionsOf,
  COMPLETE,
  isBelow,
  versionOfUrl,
  versionRefusal,
  type ApiVersions,
} from './versions/api-version.ts';

type Needs = Pick<Engine, 'config'> & { log: FastifyBaseLogger; authorization?: Authorization | undefined };

/** All routes behind one request listener; `listening/listeners.ts` opens the sockets. */
export async function buildServer(
  engine: Needs,
  plugins: readonly FastifyPluginAsyncTypebox[],
  pending: PendingRequests,
  limits: TcpLimits | undefined,
  endpoints: readonly Endpoint[] = ENDPOINTS,
): Promise<FastifyInstance> {
  const versions = apiVersionsOf(engine.config);
  if (isBelow(COMPLETE, versions.max)) {
    engine.log.warn({ newest: versions.max }, `versions of the API above ${COMPLETE} are served, but not complete`);
  }
  const ofEngine = engineHeaders(versions.max);
  const headers = (): Headers => answerHeaders(ofEngine, engine.config.apiCorsHeader);
  const http = newServer(engine.log, versions, async (error, request, reply) => {
    reply.headers({ ...headers(), 'content-type': 'application/json' });
    await limits?.admit(request, reply, 'unreadable');
    if (!reply.sent) answerOutsideOfRoutes(error, reply);
  });
  addVersions(http, versions);
  addBodyParser(http);
  http.addHook('onRequest', (request, reply, done) => {
    if (request.routeOptions.config.endpoint?.lasts !== true) pending.add(reply.raw);
    reply.headers({ ...headers() });
    done(refusalOf(request.raw, engine.config.apiCorsHeader));
  });
  if (limits !== undefined) {
    // Paths without a route count as one endpoint, because there is no limit to their number.
    http.addHook('onRequest', async (request, reply) => {
      await limits.admit(request, reply, `${request.method} ${request.routeOptions.url ?? '*'}`);
    });
  }
  if (engine.authorization !== undefined) addAuthorization(http, engine.authorization);
  addCommonHooks(http);
  await addRoutes(http, plugins, endpoints);
  await http.ready();
  return http;
}

/** `refuseEarly` answers requests that fail before routing. */
function newServer(
  log: FastifyBaseLogger,
  versions: ApiVersions,
  refuseEarly: (error: unknown, request: FastifyRequest, reply: FastifyReply) => Promise<void>,
): FastifyInstance {
  const http = Fastify({
    // Never listens: the listeners of several sockets share its routes.
    serverFactory: (handler) => createServer(handler),
    rewriteUrl: (request) => rewriteUrl(request.method ?? 'GET', request.url ?? '/', versions),
    loggerInstance: log,
    childLoggerFactory: (logger) => logger, // each line has the request's name anyway
    logController: new LogController({ disableRequestLogging: true }),
    exposeHeadRoutes: false,
    routerOptions: { maxParamLength: 2048 },
    bodyLimit: Number.MAX_SAFE_INTEGER, // body.ts has one for JSON; archives have none
    frameworkErrors: (error, request, reply) => void refuseEarly(error, request, reply),
    schemaController: { compilersFactory: { buildValidator: () => unused, buildSerializer: () => unused } },
  });
  http.setErrorHandler((error, request, reply) => answerError(error, request, reply));
  http.setValidatorCompiler(lazyValidator);
  // The schemas describe and validate requests; answers need no check.
  http.setSerializerCompiler(() => (value) => JSON.stringify(value));
  return http;
}

/** The client's version, and the refusal of an unsupported one. */
function addVersions(http: FastifyInstance, versions: ApiVersions): void {
  http.decorateRequest('apiVersion', {
    getter(this: FastifyRequest) {
      return versionOfUrl(this.originalUrl, versions);
    },
  });
  http.setNotFoundHandler((request, reply) => {
    if (request.url.startsWith(UNCLEAN)) return void reply.redirect(request.url.slice(UNCLEAN.length), 301);
    if (!request.url.startsWith(UNSUPPORTED)) throw new EngineError('notFound', 'page not found');
    const [written = ''] = request.url.slice(UNSUPPORTED.length).split('?');
    refuse(reply.code(400), versionRefusal(written, versions), false);
  });
}

function addCommonHooks(http: FastifyInstance): void {
  http.addHook('onRequest', (request, reply, done) => {
    // For any path: a browser asks before it sends the request itself.
    if (request.method === 'OPTIONS') void reply.code(200).send();
    else done();
  });
  http.addHook('onResponse', (request, reply, done) => {
    // Without the query: builds have secrets there.
    const [path] = request.originalUrl.split('?');
    const milliseconds = Math.round(reply.elapsedTime);
    request.log.debug({ method: request.method, path, status: reply.statusCode, milliseconds }, 'answered');
    dropUnread(request.raw);
    done();
  });
  // Exactly this, or docker's clients show an error's JSON instead of its message.
  http.addHook('onSend', (_request, reply, payload, done) => {
    if (reply.getHeader('content-type') === 'application/json; charset=utf-8') {
      reply.header('content-type', 'application/json');
    }
    done(null, payload);
  });
  http.addHook('preValidation', (request, _reply, done) => {
    const { querystring, body } = request.routeOptions.schema ?? {};
    if (querystring !== undefined)
      request.query = readQuery(querystring as ValueSchema, request.query as object as Record<string, unknown>);
    if (request.body === undefined && request.routeOptions.config.needsBody === true)
      throw new EngineError('invalid', 'the request has no body');
    if (body !== undefined) request.body = readBody(body as ValueSchema, request.body);
    done();
  });
}

/** The routes as a listener for node:http. */
export function listenerOf(http: FastifyInstance): RequestListener {
  return (request, response) => http.routing(request, response);
}

/** Replaces the compilers that Fastify would load: ours are set after its creation, and use far less memory. */
function unused(): never {
  throw new Error('a schema bypassed our compilers');
}
