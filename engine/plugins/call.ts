import { readFileSync } from 'node:fs';
import http, { type ClientRequest, type IncomingMessage } from 'node:http';
import https from 'node:https';

import { holdSocket } from '../host/files/held-socket.ts';
import { readWhole } from '../lib/bytes/read-whole.ts';
import type { Clock } from '../lib/clock.ts';
import { retry } from '../lib/concurrency/retry.ts';
import { EngineError, hasCode } from '../lib/errors.ts';
import type { PluginAddress } from './find.ts';

export type Answer = Readonly<{ status: number; text: string }>;

type How = Readonly<{
  clock: Clock;
  /** The limit for the whole answer of one attempt. */
  timeoutMs: number;
  /** How long a plugin that does not accept connections is tried again. */
  patienceMs: number;
  signal?: AbortSignal | undefined;
}>;

const MEDIA_TYPE = 'application/vnd.docker.plugins.v1.2+json';
/** A plugin's answer is small; a larger one is an error. */
const MAX_ANSWER_BYTES = 16 * 1024 * 1024;
const FIRST_DELAY_MS = 100;
const MAX_DELAY_MS = 4000;
/** The plugin has not seen the request: it starts, or is replaced. */
const NOT_THERE = ['ENOENT', 'ECONNREFUSED', 'EAGAIN'];

/** Asks a plugin: `POST /Method`, repeated while nobody listens at its address. Throws the system's error. */
export async function callPlugin(address: PluginAddress, method: string, body: unknown, how: How): Promise<Answer> {
  const text = JSON.stringify(body);
  const { clock, patienceMs: timeoutMs, signal } = how;
  return await retry(
    { clock, signal, timeoutMs, delayMs: FIRST_DELAY_MS, maxDelayMs: MAX_DELAY_MS, isTransient: isNotThere },
    async () => await ask(address, method, text, how),
  );
}

function isNotThere(error: unknown): boolean {
  return NOT_THERE.some((code) => hasCode(error, code));
}

async function ask(
  address: PluginAddress,
  method: string,
  text: string,
  { clock, timeoutMs, signal }: How,
): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>();
  using reached = reach(address);
  const request = open(reached.address, { method, text, signal }, (response) => {
    readAll(response).then((read) => resolve({ status: response.statusCode ?? 0, text: read }), reject);
  });
  using _timer = clock.after(timeoutMs, () =>
    request.destroy(new Error(`${method}: no answer within ${timeoutMs / 1000} seconds`)),
  );
  request.on('error', reject);
  request.on('upgrade', ({ statusCode }, socket) => {
    socket.destroy(); // nothing else would report the end of this request
    reject(new Error(`${method}: it answers with status ${statusCode}`));
  });
  request.end(text);
  return await promise;
}

type Reachable = Exclude<PluginAddress, { kind: 'own' }>;

/** A plugin's own socket is held until the answer is there. */
function reach(address: PluginAddress): Disposable & { address: Reachable } {
  if (address.kind !== 'own') return { address, [Symbol.dispose]: () => undefined };
  const held = holdSocket(address.folder, address.socket);
  return { address: { kind: 'unix', socketPath: held.path }, [Symbol.dispose]: () => held[Symbol.dispose]() };
}

function open(
  address: Reachable,
  { method, text, signal }: Readonly<{ method: string; text: string; signal: AbortSignal | undefined }>,
  answered: (response: IncomingMessage) => void,
): ClientRequest {
  const options = {
    method: 'POST',
    path: `/${method}`,
    agent: false,
    ...(signal && { signal }),
    headers: { accept: MEDIA_TYPE, 'content-type': MEDIA_TYPE, 'content-length': Buffer.byteLength(text) },
  } as const;
  if (address.kind === 'unix') return http.request({ ...options, socketPath: address.socketPath }, answered);
  const { host, port, tls } = address;
  if (tls === undefined) return http.request({ ...options, host, port }, answered);
  return https.request(
    {
      ...options,
      host,
      port,
      rejectUnauthorized: tls.InsecureSkipVerify !== true,
      ca: contentOf(tls.CAFile),
      cert: contentOf(tls.CertFile),
      key: contentOf(tls.KeyFile),
    },
    answered,
  );
}

function contentOf(path = ''): Buffer | undefined {
  if (path === '') return undefined;
  try {
    return readFileSync(path);
  } catch (error) {
    throw new EngineError('failed', `the file ${path} of its TLSConfig cannot be read`, { cause: error });
  }
}

async function readAll(response: IncomingMessage): Promise<string> {
  const read = await readWhole(response, MAX_ANSWER_BYTES);
  if (read !== undefined) return read.toString();
  response.destroy();
  throw new Error(`the plugin's answer has more than ${MAX_ANSWER_BYTES} bytes`);
}
