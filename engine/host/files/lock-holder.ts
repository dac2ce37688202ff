import { closeSync, openSync } from 'node:fs';

import { hasCode } from '../../lib/errors.ts';
import { bind, check } from '../libc.ts';

const fcntl = bind<[number, number, Buffer], number>('int fcntl(int fd, int command, void *lock)');

const F_GETLK = 5;
const [F_WRLCK, F_UNLCK] = [1, 2];
/** `struct flock`: type and whence, start, length, process. */
const FLOCK_BYTES = 32;
const PID_OFFSET = 24;

/** The process that holds a lock of fcntl(2) on a file; undefined: none does, or there is no such file. */
export function lockHolder(path: string): number | undefined {
  let fd: number;
  try {
    fd = openSync(path, 'r+');
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return undefined;
    throw error;
  }
  try {
    const lock = Buffer.alloc(FLOCK_BYTES);
    lock.writeUInt16LE(F_WRLCK);
    check(fcntl(fd, F_GETLK, lock), 'fcntl', [path, 'F_GETLK']);
    return lock.readUInt16LE() === F_UNLCK ? undefined : lock.readInt32LE(PID_OFFSET);
  } finally {
    closeSync(fd);
  }
}
