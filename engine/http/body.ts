import type { IncomingMessage } from 'node:http';

import type { FastifyInstance, FastifyRequest } from 'fastify';

import { EngineError } from '../lib/errors.ts';

/** More than any create body is; archives are streams and have no limit here. */
const JSON_LIMIT_BYTES = 8 * 1024 * 1024;

/** Reads JSON where the route has a body schema, whatever the content type says; leaves the stream alone elsewhere. */
export function addBodyParser(http: FastifyInstance): void {
  http.removeAllContentTypeParsers();
  http.addContentTypeParser('*', async (request: FastifyRequest, payload: IncomingMessage) => {
    if (request.routeOptions.schema?.body === undefined) return undefined;
    const text = await readText(payload);
    if (text.trim() === '') return undefined;
    try {
      return JSON.parse(text) as unknown;
    } catch (error) {
      throw new EngineError('invalid', `the body is not JSON: ${String(error)}`, { cause: error });
    }
  });
}

async function readText(payload: IncomingMessage): Promise<string> {
  const pieces: Buffer[] = [];
  let length = 0;
  for await (const piece of payload as AsyncIterable<Buffer>) {
    length += piece.length;
    if (length > JSON_LIMIT_BYTES)
      throw new EngineError('tooLarge', `the body is larger than ${JSON_LIMIT_BYTES} bytes`);
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString('utf8');
}
