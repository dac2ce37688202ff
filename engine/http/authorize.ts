import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';

import { EngineError } from '../lib/errors.ts';
import { messageOf } from '../lib/failure-message.ts';
import type { Authorization, AuthorizedRequest } from '../plugins/authorization.ts';
import { errorStatus } from './errors.ts';
import type { Reply } from './reply.ts';
import type { ApiRequest } from './request.ts';
import { rawBodyOf } from './streams/body.ts';
import { clientGone } from './streams/client-gone.ts';

/**
 * As in docker, the largest body for plugins. A larger one is refused, or blanks could hide a request from the plugin.
 */
const MAX_BODY_BYTES = 1024 * 1024;

/** A request as the plugins saw it. */
export type SeenByPlugins = AuthorizedRequest;

/** Asks the plugins about a request, with or without a route, before anything else looks at it. */
export async function admitByPlugins(
  authorization: Authorization,
  request: ApiRequest,
  signal: AbortSignal,
): Promise<SeenByPlugins> {
  const seen = requestOf(request);
  await authorization.admit(seen, signal);
  return seen;
}

/** Asks the plugins about an answer before it is sent. They see all but streams. */
export async function releaseByPlugins(
  authorization: Authorization,
  seen: SeenByPlugins,
  request: ApiRequest,
  reply: Reply,
): Promise<void> {
  const payload = reply.body();
  const body = payload === undefined ? undefined : Buffer.from(payload);
  const headers = textHeaders(reply.getHeaders());
  try {
    const answer = { status: reply.statusCode, headers, body: withinLimit(body) };
    await authorization.release(seen, answer, clientGone(reply.raw));
  } catch (error) {
    reply
      .code(errorStatus(error, request.apiVersion))
      .type('application/json')
      .send({ message: messageOf(error) });
  }
}

function requestOf(request: ApiRequest): AuthorizedRequest {
  const { raw } = request;
  const { socket } = raw;
  const certificate = isTls(socket) && socket.authorized ? socket.getPeerX509Certificate() : undefined;
  const name = certificate?.toLegacyObject().subject.CN;
  const hasSecrets = request.url.split('?')[0] === '/auth';
  return {
    user: typeof name === 'string' ? name : '',
    method: raw.method ?? '',
    uri: request.originalUrl,
    headers: textHeaders(raw.headersDistinct),
    body: hasSecrets ? undefined : wholeBody(raw),
    certificates: certificate === undefined ? [] : [certificate.toString()],
  };
}

function isTls(socket: Socket): socket is TLSSocket {
  return 'encrypted' in socket;
}

function wholeBody(raw: ApiRequest['raw']): Buffer | undefined {
  const body = rawBodyOf(raw);
  if (body === undefined || body.length < MAX_BODY_BYTES) return body;
  throw new EngineError('forbidden', `a body of ${body.length} bytes is more than authorization plugins are shown`);
}

function withinLimit(body: Buffer | undefined): Buffer | undefined {
  return body !== undefined && body.length < MAX_BODY_BYTES ? body : undefined;
}

/** One text for each, with the names as Go writes them; without credentials for registries and secrets of builds. */
function textHeaders(headers: Readonly<Record<string, unknown>>): Record<string, string> {
  const shown = Object.entries(headers).filter(
    ([name]) => !/^(x-registry-(auth|config)|x-build-secrets|authorization)$/i.test(name),
  );
  return Object.fromEntries(
    shown.map(([name, value]) => [
      name.replaceAll(/(^|-)[a-z]/g, (letter) => letter.toUpperCase()),
      Array.isArray(value) ? value.join(', ') : String(value),
    ]),
  );
}
