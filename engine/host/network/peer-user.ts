import type { Socket } from 'node:net';

import { bind } from '../libc.ts';

const SOL_SOCKET = 1;
const SO_PEERCRED = 17;
/** `struct ucred`: pid, uid, gid. */
const [UCRED_BYTES, UID_AT] = [12, 4];

const getsockopt = bind<[number, number, number, Buffer, Buffer], number>(
  'int getsockopt(int fd, int level, int name, void *value, void *length)',
);

/** The id of the user who opened a Unix socket; undefined for a closed or another one. */
export function peerUser(socket: Socket): number | undefined {
  // Node has no public API for the descriptor.
  const { _handle: handle } = socket as Socket & { _handle?: { fd: number } | null };
  if (handle == null || handle.fd < 0) return undefined;
  const value = Buffer.alloc(UCRED_BYTES);
  const length = Buffer.alloc(4);
  length.writeUInt32LE(UCRED_BYTES);
  if (getsockopt(handle.fd, SOL_SOCKET, SO_PEERCRED, value, length) < 0) return undefined;
  const uid = value.readUInt32LE(UID_AT);
  return uid === 2 ** 32 - 1 ? undefined : uid;
}
