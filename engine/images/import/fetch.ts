import type * as Undici from 'undici';

import { EngineError, hasCode } from '../../lib/errors.ts';
import { messageOf } from '../../lib/failure-message.ts';
import { decodePercent } from '../../lib/notations/percent.ts';
import { proxyFor } from '../../lib/proxies.ts';
import type { Report } from '../progress/progress.ts';

/** How long a server may be silent, before its answer and within it. */
const SILENCE_TIMEOUT_MS = 30_000;
const REDIRECTIONS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);
const LIMIT = 10;
/** A name that the domain name system can have, or an address. */
const HOST = /^(?:[\w.-]{1,253}|\[[\d:a-f.]+\])$/;

/** An answer of a web server, whose redirections were followed. */
type Fetched = Readonly<{
  url: URL;
  headers: Readonly<Record<string, string>>;
  body: AsyncIterable<Uint8Array>;
}>;

/** An archive from a web server, as a stream. */
export async function fetchArchive(source: string, report: Report): Promise<AsyncIterable<Uint8Array>> {
  const { url, body } = await fetchFile(source);
  report({ status: `Downloading from ${addressOf(url)}` });
  return body;
}

type Options = Readonly<{ signal?: AbortSignal; silenceMilliseconds?: number }>;

/**
 * Like `fetchArchive`, with the server's headers, also by the proxy of the environment; `signal` ends the download. A
 * silent server throws `failed` in the body too.
 */
export async function fetchFile(source: string, options: Options = {}): Promise<Fetched> {
  let url = urlOf(source);
  try {
    const undici = await import('undici'); // takes 12 MB, which most daemons never need
    for (let redirections = 0; ; redirections += 1) {
      const { statusCode, headers, body } = await ask(undici, url, options);
      if (statusCode === 200) return { url, headers: textsOf(headers), body: told(body, url) };
      await body.dump();
      const next = REDIRECTIONS.has(statusCode) ? headers.location : undefined;
      if (next === undefined) throw new EngineError('failed', `${addressOf(url)} answers ${statusCode}`);
      if (redirections === LIMIT)
        throw new EngineError('failed', `${addressOf(urlOf(source))} is redirected more than ${LIMIT} times`);
      url = nextUrl(url, String(next));
    }
  } catch (error) {
    if (error instanceof EngineError) throw error;
    throw new EngineError('failed', `${addressOf(url)} cannot be downloaded: ${reasonOf(error)}`, { cause: error });
  }
}

/** Agents of proxies keep their connections, as the one without a proxy does. */
const agents = new Map<string, Undici.ProxyAgent>();

async function ask(
  { ProxyAgent, request }: typeof Undici,
  url: URL,
  { signal, silenceMilliseconds = SILENCE_TIMEOUT_MS }: Options,
): Promise<Undici.Dispatcher.ResponseData> {
  const proxy = proxyFor(url)?.href;
  return await request(url, {
    headersTimeout: silenceMilliseconds,
    bodyTimeout: silenceMilliseconds,
    headers: authorizationIn(url),
    ...(signal !== undefined && { signal }),
    ...(proxy !== undefined && { dispatcher: agents.getOrInsertComputed(proxy, (uri) => new ProxyAgent({ uri })) }),
  });
}

/** The body; an error of it names the address. */
async function* told(body: AsyncIterable<Uint8Array>, url: URL): AsyncGenerator<Uint8Array> {
  try {
    yield* body;
  } catch (error) {
    throw new EngineError('failed', `${addressOf(url)} cannot be downloaded: ${reasonOf(error)}`, { cause: error });
  }
}

/** An address as it may be shown: without its name and password. */
export function addressOf(url: URL): string {
  const shown = new URL(url);
  shown.username = '';
  shown.password = '';
  return shown.href;
}

/** The part of an address before its host is a name and a password for that host only. Throws `invalid`. */
function authorizationIn(url: URL): Record<string, string> {
  const { username, password } = url;
  if (username === '' && password === '') return {};
  const [name, secret] = [decodePercent(username), decodePercent(password)];
  if (name === undefined || secret === undefined) {
    throw new EngineError('invalid', `the user of ${addressOf(url)} has an invalid escape`);
  }
  return { authorization: `Basic ${Buffer.concat([name, Buffer.from(':'), secret]).toString('base64')}` };
}

function textsOf(headers: Readonly<Record<string, string | string[] | undefined>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, [value ?? ''].flat().join(', ')]));
}

/** The URL in `fromSrc`; the scheme may be missing: `example.com/root.tar`. */
function urlOf(source: string): URL {
  const text = /^[a-z][a-z0-9+.-]*:\/\//i.test(source) ? source : `http://${source}`;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !['http:', 'https:'].includes(url.protocol) || !HOST.test(url.hostname)) {
    throw new EngineError('invalid', `fromSrc is neither - nor a URL: ${source}`);
  }
  return url;
}

/** The target of a redirect, relative to the URL before; only http and https. */
function nextUrl(before: URL, location: string): URL {
  const url = URL.canParse(location, before) ? new URL(location, before) : undefined;
  if (url !== undefined && ['http:', 'https:'].includes(url.protocol)) return url;
  throw new EngineError('failed', `${addressOf(before)} is redirected to an unsupported URL: ${location}`);
}

function reasonOf(error: unknown): string {
  if (hasCode(error, 'UND_ERR_HEADERS_TIMEOUT') || hasCode(error, 'UND_ERR_BODY_TIMEOUT'))
    return 'the server is silent';
  return messageOf(error);
}
