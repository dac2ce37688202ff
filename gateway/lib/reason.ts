import { readFileSync } from 'node:fs';
import { getSystemErrorMessage } from 'node:util';

type Failure = Error &
  Partial<Record<'code' | 'syscall' | 'path' | 'address' | 'hostname', string>> & { errno?: number; port?: number };

/** Says why something failed, without the names of the system's calls and errors. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error instanceof AggregateError && error.errors.length > 0) return reasonOf(error.errors[0]);
  const { code, errno, syscall, hostname } = error as Failure;
  if (hostname !== undefined) return 'no such host';
  if (code?.startsWith('HPE_')) return 'it speaks no HTTP';
  if (code === 'ECONNRESET') return 'the connection broke';
  if (code === 'ERR_INVALID_ARG_VALUE') return 'a path with a NUL byte is invalid';
  return syscall !== undefined && errno !== undefined && errno < 0 ? getSystemErrorMessage(errno) : error.message;
}

/** Like `reasonOf`, with the file or the address that the failure is about. */
export function failureOf(error: Error): string {
  const { path, address, port, hostname } = error as Failure;
  const isPort = port !== undefined && port >= 0; // a socket has -1
  const place = [path ?? hostname ?? address ?? [], isPort ? port : []].flat().join(':');
  return place === '' ? reasonOf(error) : `${place}: ${reasonOf(error)}`;
}

/** Reads a file that a setting names. Throws an error whose message names the file and the reason. */
export function readFile(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new Error(`${path}: ${reasonOf(error)}`, { cause: error });
  }
}
