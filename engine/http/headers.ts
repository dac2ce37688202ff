import { currentRequest } from '../lib/request-id.ts';
import { VERSION } from '../version.ts';
import { canonicalName } from './canonical-headers.ts';
import type { ApiVersion } from './versions/api-version.ts';

const CORS_HEADERS = 'Origin, X-Requested-With, Content-Type, Accept, X-Registry-Auth';
const CORS_METHODS = 'HEAD, GET, POST, DELETE, PUT, OPTIONS';

export type Headers = Readonly<Record<string, string>>;

/** The headers of every answer, hijacked ones included: clients negotiate with them. */
export function engineHeaders(newest: ApiVersion): Headers {
  return {
    'Api-Version': newest,
    'Docker-Experimental': 'false',
    OSType: 'linux',
    Server: `Gantry/${VERSION} (linux)`,
  };
}

/** Headers of the engine with the name of the request, and CORS headers if the operator has named an origin. */
export function answerHeaders(ofEngine: Headers, allowedOrigin: string): Headers {
  const request = currentRequest();
  const named = request === undefined ? ofEngine : { ...ofEngine, 'X-Request-Id': request };
  if (allowedOrigin === '') return named;
  return {
    ...named,
    'Access-Control-Allow-Origin': allowedOrigin,
    'Access-Control-Allow-Headers': CORS_HEADERS,
    'Access-Control-Allow-Methods': CORS_METHODS,
  };
}

/** Headers as lines, for a head that is written by hand. */
export function headerLines(headers: Readonly<Record<string, unknown>>): string[] {
  return Object.entries(headers).map(([name, value]) => `${canonicalName(name)}: ${String(value)}`);
}

/** A complete answer to bytes that are not a request, in the form of every refusal. */
export function rawRefusal(message: string, newest: ApiVersion): string {
  const body = JSON.stringify({ message });
  const head = [
    'HTTP/1.1 400 Bad Request',
    ...headerLines(engineHeaders(newest)),
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Connection: close',
  ];
  return `${head.join('\r\n')}\r\n\r\n${body}`;
}
