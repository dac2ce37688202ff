import type { Duplex } from 'node:stream';
import { finished } from 'node:stream/promises';

import { FrameReader } from '@gantry/client/frames.ts';

type SessionOptions = {
  /** The container has a terminal: the stream is raw, and the local terminal goes into raw mode. */
  tty: boolean;
  stdin: boolean;
  /** Sends the engine the size of the local terminal, now and whenever it changes. */
  resize?: (size: { width: number; height: number }) => Promise<void>;
};

/**
 * Connects this process's terminal or pipes with a hijacked stream until the engine ends it.
 *
 * The terminal is restored in any case: return, exception or signal.
 */
export async function runSession(socket: Duplex, options: SessionOptions): Promise<void> {
  using _terminal = options.tty && options.stdin ? rawTerminal() : undefined;
  using _sizes = options.tty && options.resize !== undefined ? followSize(options.resize) : undefined;
  if (options.stdin) {
    process.stdin.pipe(socket);
  } else {
    socket.end();
  }
  try {
    await copyOutput(socket, options.tty);
  } finally {
    process.stdin.unpipe(socket);
    process.stdin.pause();
    socket.destroy();
  }
}

async function copyOutput(socket: Duplex, tty: boolean): Promise<void> {
  // A reader that has ended, such as `head`, ends the session, without a stack trace.
  process.stdout.once('error', () => socket.destroy());
  if (tty) {
    socket.pipe(process.stdout, { end: false });
  } else {
    const frames = new FrameReader((stream, piece) => {
      if (!process[stream].write(piece)) pauseUntilDrained(socket, process[stream]);
    });
    socket.pipe(frames).resume();
  }
  try {
    await finished(socket, { writable: false });
  } catch (error) {
    if (!isHangUp(error)) throw error;
  }
}

function pauseUntilDrained(socket: Duplex, output: NodeJS.WriteStream): void {
  socket.pause();
  output.once('drain', () => socket.resume());
}

function isHangUp(error: unknown): boolean {
  return (
    error instanceof Error &&
    'code' in error &&
    (error.code === 'ECONNRESET' || error.code === 'EPIPE' || error.code === 'ERR_STREAM_PREMATURE_CLOSE')
  );
}

function rawTerminal(): Disposable {
  if (!process.stdin.isTTY) return { [Symbol.dispose]: () => undefined };
  process.stdin.setRawMode(true);
  process.once('exit', restore);
  process.once('SIGTERM', end);
  process.once('SIGHUP', end);
  return {
    [Symbol.dispose]: () => {
      process.off('exit', restore);
      process.off('SIGTERM', end);
      process.off('SIGHUP', end);
      restore();
    },
  };
}

function restore(): void {
  process.stdin.setRawMode(false);
}

function end(): void {
  restore();
  process.exit(128 + 15);
}

function followSize(resize: (size: { width: number; height: number }) => Promise<void>): Disposable {
  const send = (): void => {
    const { columns, rows } = process.stdout;
    if (columns === undefined || rows === undefined) return;
    // The container may have just ended; then the session ends too.
    resize({ width: columns, height: rows }).catch(() => undefined);
  };
  send();
  process.stdout.on('resize', send);
  return { [Symbol.dispose]: () => void process.stdout.off('resize', send) };
}
