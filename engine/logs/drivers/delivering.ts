import { bufferSize, cacheIsDisabled } from '../cache-options.ts';
import { bufferPath, checkpointPath } from '../delivery/buffer-path.ts';
import { readCheckpoint } from '../delivery/checkpoint.ts';
import type { Sender, SenderContext } from '../delivery/sender.ts';
import type { LogDriver, LogOptions } from '../driver.ts';
import { readLog } from '../log-file.ts';

type Receiver = Readonly<{
  name: string;
  options: readonly string[];
  check: (options: LogOptions) => void;
  /** A promise if it has to load a library that other drivers do not need. */
  deliver: (context: SenderContext) => Sender | Promise<Sender>;
  /** Dockerd's words for an option that it does not know. */
  unknown?: (option: string) => string;
}>;

/**
 * A driver with a receiver: the shim writes a bounded buffer, from which lines are delivered and the log is read back.
 */
export function deliveringDriver({ name, options, check, deliver, unknown }: Receiver): LogDriver {
  return {
    name,
    options: options,
    ...(unknown && { unknown }),
    check: (given) => {
      bufferSize(given);
      check(given);
    },
    path: bufferPath,
    showsPath: false,
    shimLog: ({ logPath, hostConfig }) => ({
      path: logPath,
      ...bufferSize(hostConfig.LogConfig.Config),
      firstNumber: readCheckpoint(checkpointPath(logPath)).position.seq + 1,
    }),
    reader: ({ logPath, hostConfig }) =>
      cacheIsDisabled(hostConfig.LogConfig.Config) ? undefined : (query, follow) => readLog(logPath, query, follow),
    deliver,
  };
}
