import { ApiError } from '@gantry/client/connection.ts';

const FORWARDED: readonly NodeJS.Signals[] = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2'];

/** Passes this program's signals on to the container while it is attached without a terminal. */
export function forwardSignals(send: (signal: NodeJS.Signals) => Promise<void>): Disposable {
  const forward = (signal: NodeJS.Signals): void => {
    send(signal).catch((error: unknown) => {
      // The container ended just before the signal.
      if (!(error instanceof ApiError)) throw error;
    });
  };
  for (const signal of FORWARDED) process.on(signal, forward);
  return {
    [Symbol.dispose]: () => {
      for (const signal of FORWARDED) process.off(signal, forward);
    },
  };
}
