import { constants } from 'node:os';

import koffi from 'koffi';

/** A foreign function with TypeScript's idea of its arguments; koffi itself knows only the C prototype. */
type Foreign<Arguments extends readonly unknown[], Result> = {
  (...values: Arguments): Result;
  async: (...values: [...Arguments, (error: Error | null, result: Result) => void]) => void;
};

const library = koffi.load('libc.so.6');

/** Binds one function of the C library. `prototype` is its declaration in C. */
export function bind<Arguments extends readonly unknown[], Result>(prototype: string): Foreign<Arguments, Result> {
  return keepingErrno(library.func(prototype) as unknown as Foreign<Arguments, Result>);
}

let lastErrno = 0;

/**
 * Reads errno before anything else runs: even creating a string can trigger a garbage collection, whose system calls
 * overwrite errno (seen: `EWOULDBLOCK` instead of `ENOENT`, once in 20,000 calls).
 */
function keepingErrno<Arguments extends readonly unknown[], Result>(
  call: Foreign<Arguments, Result>,
): Foreign<Arguments, Result> {
  const kept = (...values: Arguments): Result => {
    const result = call(...values);
    if (typeof result === 'number' && result < 0) lastErrno = koffi.errno();
    return result;
  };
  return Object.assign(kept, { async: call.async });
}

/** Like `bind` for another library, named as the dynamic linker finds it. */
export function loadLibrary(name: string): typeof bind {
  const other = koffi.load(name);
  return <Arguments extends readonly unknown[], Result>(prototype: string): Foreign<Arguments, Result> =>
    other.func(prototype);
}

/** The address of a buffer, for structures that point to it; the caller keeps the buffer alive. */
export function pointerTo(buffer: Buffer): bigint {
  return koffi.address(buffer);
}

const names = new Map(Object.entries(constants.errno).map(([name, value]) => [value, name]));
// Node's table has only POSIX errors; these are Linux's own, which netlink and xattrs return.
for (const [value, name] of [
  [49, 'EUNATCH'],
  [54, 'EXFULL'],
  [61, 'ENODATA'],
  [95, 'EOPNOTSUPP'],
  [524, 'ENOTSUPP'],
] as const) {
  names.set(value, name);
}

/** A failed system call: its name, its arguments, and the name of the errno in `code`, such as `EBUSY`. */
export class SystemError extends Error {
  readonly code: string;
  readonly errno: number;
  readonly syscall: string;

  constructor(syscall: string, values: readonly unknown[], errno: number, detail = '') {
    const code = names.get(errno) ?? `E${errno}`;
    super(`${syscall}(${values.map((value) => JSON.stringify(value)).join(', ')}): ${code}${detail && `: ${detail}`}`);
    this.name = 'SystemError';
    this.code = code;
    this.errno = errno;
    this.syscall = syscall;
  }
}

/** Returns the result of a call, or throws when it is negative. The error names `values`. */
export function check(result: number, syscall: string, values: readonly unknown[]): number {
  if (result < 0) throw refusal(syscall, values);
  return result;
}

/** Whether the last call failed with this errno: an error would take its stack, a hundred times the time of a call. */
export function hasFailedWith(code: string): boolean {
  return names.get(lastErrno) === code;
}

/** The errno of the last call, for callers that do not treat it as an error. */
export function refusal(syscall: string, values: readonly unknown[]): SystemError {
  return new SystemError(syscall, values, lastErrno);
}
