import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';

import type { Config } from '../config/daemon-config.ts';
import { closeServer, listenForPage } from '../http/listening/listeners.ts';
import type { PendingRequests } from '../http/listening/pending-requests.ts';
import { markReadOnly } from '../http/read-only.ts';
import { API_HEADERS, PAGE_HEADERS, pageFile } from './files.ts';
import { foreign } from './foreign.ts';
import { serverName } from './server-name.ts';
import type { PageSessions, Session } from './sessions.ts';

type Needs = Readonly<{
  listener: RequestListener;
  pending: PendingRequests;
  sessions: PageSessions;
  isReadOnly: boolean;
  /** Given: served over TLS, to clients with a certificate. */
  tls?: Config | undefined;
}>;

/** The open port. */
export type PageServer = AsyncDisposable &
  Readonly<{
    host: string;
    port: number;
    /** `http://127.0.0.1:4000`. */
    origin: string;
    /** Ends all connections. */
    disconnect: () => void;
  }>;

const COOKIE = 'gantry-page';
const ASK_ANEW = 'This page has ended, or its address was used before. Run `gantry page` for a new one.';

/** Serves the page, and the API to browsers that have a session. */
export async function servePage(at: { host: string; port: number }, needs: Needs): Promise<PageServer> {
  const listener: RequestListener = (request, response) => {
    answer(needs, request, response).catch(() => response.destroy());
  };
  const open = await listenForPage(at, listener, needs.tls);
  const { host, port } = open;
  return {
    host,
    port,
    origin: originOf(host, port, needs.tls),
    disconnect: () => {
      for (const socket of open.connections) socket.destroy();
    },
    [Symbol.asyncDispose]: async () => await closeServer(open.server, needs.pending, open.connections),
  };
}

function originOf(host: string, port: number, tls: Config | undefined): string {
  if (tls === undefined) return `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
  return `https://${serverName(tls.tlscert, host)}:${port}`;
}

async function answer(needs: Needs, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const refusal = foreign(request, needs.tls === undefined ? 'http' : 'https');
  if (refusal !== undefined) return refuse(response, refusal);
  const url = new URL(request.url ?? '/', 'http://localhost');
  if (url.pathname === '/favicon.ico') return sendNothing(response);
  if (url.pathname === '/') return enter(needs, url.searchParams.get('token'), response);
  const [, id = '', rest] = /^\/([0-9a-f]{32})(\/.*)$/s.exec(request.url ?? '') ?? [];
  const session = needs.sessions.find(id, cookieOf(request));
  if (session === undefined || rest === undefined) return refuse(response, ASK_ANEW);
  if (rest.startsWith('/api/')) return passOn(needs, session, request, response, rest.slice('/api'.length));
  return await sendFile(request, response, rest.split(/[?#]/, 1)[0]!.slice(1));
}

/** Exchanges the token of the URL for a session: the browser keeps the cookie, and its history no secret. */
function enter({ sessions, tls }: Needs, token: string | null, response: ServerResponse): void {
  const opened = token === null ? undefined : sessions.open(token);
  if (opened === undefined) return refuse(response, ASK_ANEW);
  const path = `/${opened.session.id}/`;
  response.writeHead(303, {
    ...PAGE_HEADERS,
    location: path,
    'set-cookie': `${COOKIE}=${opened.cookie}; Path=${path}; HttpOnly; SameSite=Strict${tls === undefined ? '' : '; Secure'}`,
    'content-length': 0,
  });
  response.end();
}

/** The API answers as to every client; a session's cookie is not its business. */
function passOn(
  { listener, isReadOnly }: Needs,
  session: Session,
  request: IncomingMessage,
  response: ServerResponse,
  url: string,
): void {
  request.url = url;
  delete request.headers.cookie;
  if (isReadOnly || session.readOnly) markReadOnly(request);
  for (const [name, value] of Object.entries(API_HEADERS)) response.setHeader(name, value);
  response.setHeader('gantry-page', isReadOnly || session.readOnly ? 'read-only' : 'read-write');
  listener(request, response);
}

async function sendFile(request: IncomingMessage, response: ServerResponse, name: string): Promise<void> {
  const takesGzip = /\bgzip\b/.test(request.headers['accept-encoding'] ?? '');
  const isReading = request.method === 'GET' || request.method === 'HEAD';
  const file = isReading ? await pageFile(name === '' ? 'index.html' : name, takesGzip) : undefined;
  if (file === undefined) return refuse(response, 'there is no such file of the page', isReading ? 404 : 405);
  response.writeHead(200, {
    ...PAGE_HEADERS,
    'content-type': file.type,
    'content-length': file.body.length,
    ...(file.isCompressed && { 'content-encoding': 'gzip' }),
  });
  response.end(request.method === 'HEAD' ? undefined : file.body);
}

/** Browsers ask for an icon without a session; a refusal would be an error in their console. */
function sendNothing(response: ServerResponse): void {
  response.writeHead(204, PAGE_HEADERS);
  response.end();
}

function refuse(response: ServerResponse, reason: string, status = 403): void {
  response.writeHead(status, { ...PAGE_HEADERS, 'content-type': 'text/plain; charset=utf-8', connection: 'close' });
  response.end(`${reason}\n`);
}

function cookieOf({ headers }: IncomingMessage): string | undefined {
  const cookies = (headers.cookie ?? '').split('; ').map((text) => text.split('=', 2));
  return cookies.find(([name]) => name === COOKIE)?.[1];
}
