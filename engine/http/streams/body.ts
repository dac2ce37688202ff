import type { IncomingMessage } from 'node:http';

import type { FastifyInstance, FastifyRequest } from 'fastify';

import { parseBoundedJson, UnboundedJsonError } from '../../lib/bounded-json.ts';
import { EngineError } from '../../lib/errors.ts';

/** Larger than any create body; archives are streams and have no limit here. */
const JSON_LIMIT_BYTES = 8 * 1024 * 1024;

declare module 'fastify' {
  interface FastifyContextConfig {
    /** A missing body is refused; on other routes it counts as a body without fields. */
    needsBody?: true;
  }
}

const bodies = new WeakMap<IncomingMessage, Buffer>();

/** The bytes of a body of JSON, once it is read. */
export function rawBodyOf(request: IncomingMessage): Buffer | undefined {
  return bodies.get(request);
}

/** Reads JSON where the route has a body schema, whatever the content type says; leaves the stream alone elsewhere. */
export function addBodyParser(http: FastifyInstance): void {
  // Fastify would refuse a malformed one with 415 on any route; `checkContentType` checks it instead.
  http.addHook('onRequest', (request, _reply, done) => {
    const { headers } = request.raw;
    if (headers['content-type'] !== undefined) headers['content-type'] = undefined;
    done();
  });
  http.removeAllContentTypeParsers();
  http.addContentTypeParser('*', async (request: FastifyRequest, payload: IncomingMessage) => {
    if (request.routeOptions.schema?.body === undefined) return undefined;
    checkContentType(request);
    return await readJson(payload);
  });
}

/** Reads a JSON body; undefined if it is empty. Throws `invalid` and `tooLarge`. */
export async function readJson(payload: IncomingMessage): Promise<unknown> {
  const bytes = await readAll(payload);
  bodies.set(payload, bytes);
  const text = bytes.toString('utf8');
  if (text.trim() === '') return undefined;
  try {
    return parseBoundedJson(text);
  } catch (error) {
    if (error instanceof UnboundedJsonError) throw new EngineError('invalid', `the body is refused: ${error.message}`);
    throw new EngineError('invalid', `the body is not JSON: ${String(error)}`, { cause: error });
  }
}

/** As in dockerd, only a JSON content type is accepted; a request without a body needs none. */
function checkContentType({ headers, raw }: FastifyRequest): void {
  if ((headers['content-length'] ?? '0') === '0' && headers['transfer-encoding'] === undefined) return;
  const [type = ''] = raw.headersDistinct['content-type'] ?? [];
  if (/^application\/json\s*(;|$)/i.test(type)) return;
  throw new EngineError('invalid', `Content-Type specified (${type}) must be 'application/json'`);
}

async function readAll(payload: IncomingMessage): Promise<Buffer> {
  const pieces: Buffer[] = [];
  let length = 0;
  // Its end must not close the connection, which still carries the refusal.
  for await (const piece of payload.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    length += piece.length;
    if (length > JSON_LIMIT_BYTES)
      throw new EngineError('tooLarge', `the body is larger than ${JSON_LIMIT_BYTES} bytes`);
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}
