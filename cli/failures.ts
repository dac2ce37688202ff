import { getSystemErrorMessage } from 'node:util';

import { ApiError, ConnectionError } from '@gantry/client/connection.ts';

/** One line for the user: the engine's message, or the reason why there is none. */
export function messageOf(error: unknown, address: string): string {
  if (error instanceof ApiError) return error.message;
  if (error instanceof ConnectionError) return unreachable(error, address);
  const { path } = error as NodeJS.ErrnoException;
  return path === undefined ? reasonOf(error) : `${path}: ${reasonOf(error)}`;
}

/** Errors of Node and OpenSSL, which name no failed call of the system. */
const REASONS: readonly (readonly [codes: RegExp, words: string])[] = [
  [/^HPE_/, 'it speaks no HTTP'],
  [/^ERR_OSSL_(?:PEM|ASN1|X509)/, 'a certificate or a key cannot be read'],
  [
    /^(?:ERR_SSL_|ERR_OSSL_|EPROTO$)/,
    'TLS does not work: one side does not speak it, or refuses the certificate of the other',
  ],
  [/^(?:ECONNRESET|ERR_STREAM_PREMATURE_CLOSE)$/, 'the connection broke off'],
  [/^ERR_INVALID_ARG_VALUE$/, 'a path with a NUL byte is invalid'],
];

/** Why something failed, without the names of the system's calls and errors. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error instanceof SyntaxError) return 'it is not JSON';
  const { errno, syscall, code = '', hostname } = error as NodeJS.ErrnoException & { hostname?: string };
  if (hostname !== undefined) return 'no such host';
  const [, words] = REASONS.find(([codes]) => codes.test(code)) ?? [];
  if (words !== undefined) return words;
  return syscall !== undefined && errno !== undefined && errno < 0 ? getSystemErrorMessage(errno) : error.message;
}

function unreachable({ code, cause }: ConnectionError, address: string): string {
  if (code === 'EACCES') return `permission denied for ${address}: be root, or in the socket's group`;
  if (code === 'ENOENT' || code === 'ECONNREFUSED') {
    return `cannot connect to the engine at ${address}: is "gantry daemon" running?`;
  }
  return `the connection with the engine at ${address} failed: ${reasonOf(cause)}`;
}
