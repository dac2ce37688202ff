import type { Connection } from '@gantry/client/connection.ts';
import * as containers from '@gantry/client/containers.ts';

import { exitCodeOf } from './exit-code.ts';
import { runSession } from './session.ts';
import { forwardSignals } from './signals.ts';

type Attached = Readonly<{
  tty: boolean;
  stdin: boolean;
  detachKeys: string | undefined;
  /** Passes signals on to a container without a terminal. */
  passSignals: boolean;
}>;

/**
 * Attaches to a container, and returns its exit code, or 0 after the detach keys. `begin` starts it: attached before, so
 * that the first byte is not missed.
 */
export async function runAttached(
  engine: Connection,
  id: string,
  { tty, stdin, detachKeys, passSignals }: Attached,
  begin?: () => Promise<void>,
): Promise<number> {
  const { socket } = await containers.attach(engine, id, {
    stream: true,
    stdin,
    stdout: true,
    stderr: true,
    ...(detachKeys !== undefined && { detachKeys }),
  });
  using _signals = tty || !passSignals ? undefined : forwardSignals((signal) => containers.kill(engine, id, signal));
  try {
    await begin?.();
  } catch (error) {
    socket.destroy();
    throw error;
  }
  await runSession(socket, { tty, stdin, resize: (size) => containers.resize(engine, id, size) });
  return await exitCodeOf(engine, id);
}
