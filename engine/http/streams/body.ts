import type { IncomingMessage } from 'node:http';

import { parseBoundedJson, UnboundedJsonError } from '../../lib/bounded-json.ts';
import { EngineError } from '../../lib/errors.ts';

/** Larger than any create body; archives are streams and have no limit here. */
const JSON_LIMIT_BYTES = 8 * 1024 * 1024;

const bodies = new WeakMap<IncomingMessage, Buffer>();

/** The bytes of a body of JSON, once it is read. */
export function rawBodyOf(request: IncomingMessage): Buffer | undefined {
  return bodies.get(request);
}

/** Reads the body of a route with a schema for it; undefined if the request has none. Throws `invalid` and `tooLarge`. */
export async function readRouteBody(request: IncomingMessage): Promise<unknown> {
  const { 'content-length': length = '0', 'transfer-encoding': coding } = request.headers;
  if (length === '0' && coding === undefined) return undefined;
  checkContentType(request.headers['content-type'] ?? '');
  return await readJson(request);
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
function checkContentType(type: string): void {
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
