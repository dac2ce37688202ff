import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http';

import { adminSocketPath } from '../config/admin-socket.ts';
import { listenAddress } from '../config/listen.ts';
import type { Config } from '../config/schema.ts';
import { callerKey } from '../identity/caller-key.ts';
import { readWhole } from '../lib/read-whole.ts';
import { reasonOf } from '../lib/reason.ts';
import type { GatewayLog } from '../log.ts';
import type { Operator } from '../operator.ts';
import { claimSocketPath } from '../unix-socket.ts';
import { callerLimits } from './caller-limits.ts';
import { foreign, foreignName } from './foreign.ts';
import { History } from './history.ts';
import { PAGE, pageData } from './page.ts';
import { prometheusText } from './prometheus.ts';

const MAX_BODY_BYTES = 4096;
/** Time to the end of a request. */
const REQUEST_TIMEOUT_MS = 10_000;
const MAX_CONNECTIONS = 256;
const SERVER = {
  headersTimeout: REQUEST_TIMEOUT_MS,
  requestTimeout: REQUEST_TIMEOUT_MS,
  connectionsCheckingInterval: 1000,
};

type Answer = Readonly<{ status: number; body: unknown; type?: string; headers?: Readonly<Record<string, string>> }>;
export type OperatorSettings = Readonly<{
  /** The settings in force. */
  readonly current: Config;
  /** Gives a caller other limits; an empty object takes them away. Returns the problems with them. */
  override(key: string, wanted: Readonly<Record<string, unknown>>): Promise<readonly string[]>;
}>;

type Handle = (request: Readonly<{ rest: string; body: string }>) => Promise<Answer>;

/**
 * Opens what is for the operator: a Unix socket that only the gateway's user can open, and a port for Prometheus where
 * one is configured. `settings`: those in force, and how to change those of one caller.
 */
export async function openAdmin(
  config: Config,
  operator: Operator,
  log: GatewayLog,
  settings: OperatorSettings,
): Promise<AsyncDisposable> {
  await using undo = new AsyncDisposableStack();
  const metrics = listenAddress(config.admin.metrics ?? '');
  if (metrics !== undefined && 'port' in metrics) {
    const listener = listenerFor({ 'GET /metrics': metricsOf(operator) });
    const checked = refusing(({ headers }) => foreignName(headers, metrics.host), listener);
    const server = undo.use(await listen(createServer(SERVER, checked), metrics));
    log.logger.info({ metrics: server.address }, 'metrics are served');
  }
  const history = undo.use(new History(async () => await operator.counts()));
  const pageRoutes = routesOfPage(operator, history);
  const page = listenAddress(config.admin.page ?? '');
  if (page !== undefined && 'port' in page) {
    const server = undo.use(await listen(createServer(SERVER, refusing(ofOtherSite, listenerFor(pageRoutes))), page));
    log.logger.info({ page: server.address }, 'the page is served');
  }
  const path = adminSocketPath(config);
  if (path !== undefined && (await mayUse(path, config, log))) {
    const server = createServer(SERVER, listenerFor({ ...operatorRoutes(operator, settings), ...pageRoutes }));
    const umask = process.umask(0o177); // the socket comes into being before `listen` returns
    const listening = listen(server, { path });
    process.umask(umask);
    undo.use(await listening);
  }
  const parts = undo.move();
  return { [Symbol.asyncDispose]: async () => await parts.disposeAsync() };
}

/** When the path is the default, a second gateway on the machine goes without. */
async function mayUse(path: string, { admin }: Config, { logger }: GatewayLog): Promise<boolean> {
  try {
    await claimSocketPath(path);
    return true;
  } catch (error) {
    if (admin.socket !== undefined) throw error;
    logger.warn({ err: error }, 'there is no admin socket: admin.socket chooses another path');
    return false;
  }
}

function keyOf(text: unknown): string | undefined {
  return typeof text === 'string' ? callerKey(text) : undefined;
}

function operatorRoutes(operator: Operator, settings: OperatorSettings): Record<string, Handle> {
  return {
    'GET /metrics': metricsOf(operator),
    'GET /limited': async () => ({ status: 200, body: await operator.limited() }),
    'GET /callers/': async ({ rest }) => {
      const key = keyOf(decodeName(rest));
      return key === undefined ? noCaller : { status: 200, body: await operator.caller(key) };
    },
    'GET /limits/': async ({ rest }) => {
      const key = keyOf(decodeName(rest));
      if (key === undefined) return noCaller;
      return {
        status: 200,
        body: callerLimits(settings.current, await operator.caller(key), await operator.limitsOf(key)),
      };
    },
    'POST /forgive': async ({ body }) => {
      const key = keyOf(objectIn(body)['caller']);
      if (key === undefined) return noCaller;
      await operator.forgive(key);
      return { status: 200, body: { caller: key } };
    },
    'POST /override': async ({ body }) => {
      const { caller, ...wanted } = objectIn(body);
      const key = keyOf(caller);
      if (key === undefined) return noCaller;
      const problems = await settings.override(key, wanted);
      return problems.length === 0
        ? { status: 200, body: { caller: key, ...wanted } }
        : { status: 400, body: { message: problems.join('; ') } };
    },
    'POST /content': async ({ body }) => {
      const { caller, count = 1 } = objectIn(body);
      const key = keyOf(caller);
      if (key === undefined) return noCaller;
      if (!Number.isInteger(count) || Number(count) < 1 || Number(count) > 999_999) {
        return { status: 400, body: { message: 'count must be from 1 to 999999' } };
      }
      await operator.content(key, Number(count));
      return { status: 200, body: { caller: key, count } };
    },
  };
}

/** Undefined for a broken escape, such as `%zz`. */
function decodeName(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch (error) {
    if (error instanceof URIError) return undefined;
    throw error;
  }
}

function routesOfPage(operator: Operator, history: History): Record<string, Handle> {
  return {
    'GET /': async () => ({ status: 200, body: PAGE.body, type: 'text/html; charset=utf-8', headers: PAGE.headers }),
    'GET /page.json': async () => ({ status: 200, body: await pageData(operator, history), headers: PAGE.headers }),
  };
}

const ofOtherSite = ({ headers, socket }: IncomingMessage): string | undefined =>
  foreign(headers, socket.localPort ?? 0);

/** Refuses requests for which `problemOf` gives a reason. */
function refusing(problemOf: (req: IncomingMessage) => string | undefined, listener: RequestListener): RequestListener {
  return (req, res) => {
    const problem = problemOf(req);
    if (problem === undefined) return listener(req, res);
    res.writeHead(403, { 'content-type': 'application/json; charset=utf-8', connection: 'close' });
    res.end(`${JSON.stringify({ message: problem })}\n`);
  };
}

const noCaller: Answer = {
  status: 400,
  body: { message: 'a caller is expected: user:ID, installation:ID, app:ID, workflow:ID, network:NAME or ip:ADDRESS' },
};

function objectIn(body: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(body);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
  } catch (error) {
    if (error instanceof SyntaxError) return {};
    throw error;
  }
}

function metricsOf(operator: Operator): Handle {
  return async () => ({
    status: 200,
    body: prometheusText(await operator.counts(), await operator.nearest()),
    type: 'text/plain; version=0.0.4',
  });
}

function listenerFor(routes: Readonly<Record<string, Handle>>): RequestListener {
  return (req, res) => void serve(routes, req, res);
}

async function serve(routes: Readonly<Record<string, Handle>>, req: IncomingMessage, res: ServerResponse) {
  const asked = `${req.method} ${req.url?.split('?', 1)[0]}`;
  const found = Object.entries(routes).find(
    ([route]) => asked === route || (route.endsWith('/') && route !== 'GET /' && asked.startsWith(route)),
  );
  let answer: Answer;
  try {
    const body = await readWhole(req, MAX_BODY_BYTES);
    if (body === undefined) await once(req.resume(), 'end'); // a client that still sends would not read the refusal
    if (found === undefined) answer = { status: 404, body: { message: `there is no ${asked}` } };
    else if (body === undefined) answer = { status: 413, body: { message: `more than ${MAX_BODY_BYTES} bytes` } };
    else answer = await found[1]({ rest: asked.slice(found[0].length), body });
  } catch (error) {
    if (res.destroyed) return;
    answer = { status: 503, body: { message: reasonOf(error) } };
  }
  const text = typeof answer.body === 'string' ? answer.body : `${JSON.stringify(answer.body)}\n`;
  res.writeHead(answer.status, {
    'content-type': answer.type ?? 'application/json; charset=utf-8',
    ...answer.headers,
    'content-length': Buffer.byteLength(text),
    connection: 'close',
  });
  res.end(text);
}

async function listen(server: Server, address: { path: string } | { host: string; port: number }) {
  server.maxConnections = MAX_CONNECTIONS;
  server.listen({ ...address, exclusive: true });
  await once(server, 'listening');
  return {
    address: server.address(),
    [Symbol.asyncDispose]: async () => {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}
