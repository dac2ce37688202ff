import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';

import type { FastifyInstance, FastifyRequest } from 'fastify';

import { EngineError } from '../lib/errors.ts';
import { messageOf } from '../lib/failure-message.ts';
import type { Authorization, AuthorizedRequest } from '../plugins/authorization.ts';
import { errorStatus } from './errors.ts';
import { rawBodyOf } from './streams/body.ts';

/**
 * As in docker, the largest body for plugins. A larger one is refused, or blanks could hide a request from the plugin.
 */
const MAX_BODY_BYTES = 1024 * 1024;

/**
 * Every request, with or without a route, is checked by the plugins before anything else, and every answer but a stream
 * before it is sent.
 */
export function addAuthorization(http: FastifyInstance, authorization: Authorization): void {
  const asked = new WeakMap<FastifyRequest, AuthorizedRequest>();
  http.addHook('preValidation', async (request) => {
    const seen = requestOf(request);
    await authorization.admit(seen);
    asked.set(request, seen);
  });
  http.addHook('onSend', async (request, reply, payload) => {
    const seen = asked.get(request);
    if (seen === undefined) return payload;
    const text = typeof payload === 'string' || Buffer.isBuffer(payload) ? Buffer.from(payload) : undefined;
    const headers = textHeaders(reply.getHeaders());
    try {
      await authorization.release(seen, { status: reply.statusCode, headers, body: withinLimit(text) });
      return payload;
    } catch (error) {
      reply.code(errorStatus(error, request.apiVersion)).header('content-type', 'application/json');
      reply.removeHeader('content-length');
      return JSON.stringify({ message: messageOf(error) });
    }
  });
}

function requestOf(request: FastifyRequest): AuthorizedRequest {
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

function wholeBody(raw: FastifyRequest['raw']): Buffer | undefined {
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
