export type Path = readonly (string | number)[];

/** A problem of a setting. */
export type Problem = Readonly<{
  path: Path;
  message: string;
  /** The key itself is wrong, not its value. */
  key?: boolean;
}>;

/** Reports a problem. */
export type Wrong = (path: Path, message: string) => void;

/** The most that the kernel takes. */
export const MAX_SOCKET_PATH_BYTES = 107;

export function checkSocketPath(path: Path, socket: string, wrong: Wrong): void {
  if (socket.includes('\0')) wrong(path, 'a path with a NUL byte is invalid');
  if (Buffer.byteLength(socket) <= MAX_SOCKET_PATH_BYTES) return;
  wrong(path, `the path of a socket has at most ${MAX_SOCKET_PATH_BYTES} bytes`);
}
