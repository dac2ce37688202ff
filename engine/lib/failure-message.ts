import { constants } from 'node:os';
import { getSystemErrorMessage } from 'node:util';

import { EngineError } from './errors.ts';

const ERRNO: ReadonlyMap<string, number> = new Map(Object.entries(constants.errno));
/** `EINVAL` is the answer for a name that is too long. */
const NO_SUCH_HOST: ReadonlySet<string> = new Set(['ENOTFOUND', 'EAI_AGAIN', 'ENODATA', 'EAI_NODATA', 'EINVAL']);
/** Reasons of Node itself, without a system call; others are errors of our own. */
const REASONS: ReadonlyMap<string, string> = new Map([
  ['HPE_HEADER_OVERFLOW', 'its head is too large'],
  ['ECONNRESET', 'the connection broke off'],
  ['ERR_STREAM_PREMATURE_CLOSE', 'the connection broke off'],
]);
/** The most that the kernel takes as the path of a socket, in bytes. */
export const MAX_SOCKET_PATH_BYTES = 107;

/**
 * Returns the message of a failure for a client. Of a failed system call it tells the reason, without the names of the
 * call and its error, and without paths of this machine.
 */
export function messageOf(failure: unknown): string {
  // The first failure, when its undo has failed too.
  if (failure instanceof SuppressedError) return messageOf(failure.suppressed);
  if (!(failure instanceof Error)) return String(failure);
  return failure instanceof EngineError ? failure.message : (systemMessage(failure) ?? failure.message);
}

/** Whether the name of a host could not be resolved. */
export function isUnknownHost(error: Error): boolean {
  const { code = '', hostname } = error as SystemFailure;
  return hostname !== undefined && NO_SUCH_HOST.has(String(code));
}

type SystemFailure = Error &
  Partial<Record<'syscall' | 'path' | 'address' | 'hostname', string>> & { code?: string | number; port?: number };

function systemMessage(error: Error): string | undefined {
  // A connection that was tried with several addresses has an error for each.
  if (error instanceof AggregateError && error.errors[0] instanceof Error) return messageOf(error.errors[0]);
  const { syscall, path, address, port, hostname } = error as SystemFailure;
  const code = String((error as SystemFailure).code ?? ''); // those of etcd are numbers
  if (code === 'ERR_INVALID_ARG_VALUE' && /null bytes/.test(error.message)) return 'a name with a NUL byte is invalid';
  if (syscall === undefined) return REASONS.get(code) ?? (code.startsWith('HPE_') ? 'it speaks no HTTP' : undefined);
  if (isUnknownHost(error)) return `${hostname}: no such host`;
  if (code === 'EINVAL' && isLongSocketPath(address)) {
    return `${address}: the path of a socket has at most ${MAX_SOCKET_PATH_BYTES} bytes`;
  }
  const errno = ERRNO.get(code);
  if (errno === undefined) return undefined;
  const isPort = port !== undefined && port >= 0; // a socket has -1
  const place = syscall.startsWith('spawn') ? path : [address ?? [], isPort ? port : []].flat().join(':');
  return `${place ? `${place}: ` : ''}${getSystemErrorMessage(-errno)}`;
}

function isLongSocketPath(address = ''): boolean {
  return address.startsWith('/') && Buffer.byteLength(address) > MAX_SOCKET_PATH_BYTES;
}
