import type { IncomingMessage } from 'node:http';

import { parseBoundedJson, UnboundedJsonError } from '../../lib/bounded-json.ts';
import { EngineError } from '../../lib/errors.ts';
import { BodyMemory } from './body-memory.ts';

/** Larger than any create body; archives are streams and have no limit here. */
const JSON_LIMIT_BYTES = 8 * 1024 * 1024;

/** Errors of bodies that are not read to their end. */
const REFUSALS = {
  length: () => new EngineError('tooLarge', `the body is larger than ${JSON_LIMIT_BYTES} bytes`),
  memory: () => new EngineError('unavailable', 'too many requests with long bodies at a time: send the request again'),
};

const memory = new BodyMemory();
const bodies = new WeakMap<IncomingMessage, Buffer>();

/** The bytes of a route's body of JSON, once it is read. */
export function rawBodyOf(request: IncomingMessage): Buffer | undefined {
  return bodies.get(request);
}

/** Drops them: a stream that follows may last for hours. */
export function dropRawBody(request: IncomingMessage): void {
  bodies.delete(request);
}

/** Reads the body of a route with a schema for it; undefined if the request has none. Throws `invalid` and `tooLarge`. */
export async function readRouteBody(request: IncomingMessage): Promise<unknown> {
  const { 'content-length': length = '0', 'transfer-encoding': coding } = request.headers;
  if (length === '0' && coding === undefined) return undefined;
  checkContentType(request.headers['content-type'] ?? '');
  const bytes = await readAll(request);
  bodies.set(request, bytes);
  return parseBody(bytes);
}

/** Reads a JSON body; undefined if it is empty. Throws `invalid` and `tooLarge`. */
export async function readJson(payload: IncomingMessage): Promise<unknown> {
  return parseBody(await readAll(payload));
}

function parseBody(bytes: Buffer): unknown {
  const text = bytes.toString('utf8');
  if (text.trim() === '') return undefined;
  try {
    return parseBoundedJson(text);
  } catch (error) {
    if (error instanceof UnboundedJsonError) throw new EngineError('invalid', `the body is refused: ${error.message}`);
    throw new EngineError('invalid', 'the body is not JSON', { cause: error });
  }
}

/** As in dockerd, only a JSON content type is accepted; a request without a body needs none. */
function checkContentType(type: string): void {
  if (/^application\/json\s*(;|$)/i.test(type)) return;
  throw new EngineError('invalid', `Content-Type specified (${type}) must be 'application/json'`);
}

async function readAll(payload: IncomingMessage): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  using body = memory.begin(JSON_LIMIT_BYTES, (reason) => reject(REFUSALS[reason]()));
  const take = (piece: Buffer): void => body.push(piece);
  payload.on('data', take).once('end', resolve).on('error', reject);
  try {
    await promise;
    return body.bytes;
  } finally {
    // Not destroyed: the connection still carries a refusal.
    payload.off('data', take).off('end', resolve).pause();
  }
}
