import { flushCompileCache } from 'node:module';

import type { Logger } from 'pino';

import { usage } from './config/flags.ts';
import { ConfigError } from './config/read.ts';
import { passedSockets } from './host/passed-sockets.ts';
import { systemClock } from './lib/clock.ts';
import { EngineError } from './lib/errors.ts';
import { messageOf } from './lib/failure-message.ts';
import { openLog } from './log.ts';
import { readSettings } from './settings.ts';
import { startDaemon, type Daemon } from './start.ts';
import { spareFromOom } from './system/oom-score.ts';
import { hideNewFiles } from './system/roots.ts';
import { VERSION } from './version.ts';

/** After the start, which the writing would delay by a tenth of a second where nothing is in the cache yet. */
const COMPILE_CACHE_DELAY_MS = 10_000;

/** docker's, of all commands. */
const USAGE_EXIT_CODE = 125;

const argv = process.argv.slice(2);
if (argv.includes('--help')) {
  console.log(usage());
} else if (argv.includes('--version') || argv.includes('-v')) {
  console.log(`Gantry ${VERSION}`);
} else {
  main().catch(fail);
}

async function main(): Promise<void> {
  const validate = argv.includes('--validate');
  const flags = argv.filter((word) => word !== '--validate');
  const config = readSettings(flags);
  if (validate) {
    console.log('configuration OK');
    return;
  }
  const log = openLog(config.logLevel);
  let daemon: Daemon | undefined;
  // From the first moment: without a listener the signal would end us. A signal before the start has no effect.
  process.on('SIGHUP', () => {
    if (daemon !== undefined) reload(daemon, flags, log);
  });
  passedSockets(); // before anything is started that could inherit them
  hideNewFiles();
  spareFromOom();
  const start = Promise.withResolvers<Daemon>();
  start.promise.catch(() => undefined); // told below
  // Before the start, which is brought to its end first: cut off, it would leave its sockets.
  endOnSignals(async () => {
    const begun = await start.promise;
    await begun[Symbol.asyncDispose]();
  });
  startDaemon(config, log).then(start.resolve, start.reject);
  const started = await start.promise;
  daemon = started;
  // Node itself writes it when a process ends in order: after a crash all would be compiled anew.
  systemClock.after(COMPILE_CACHE_DELAY_MS, () => flushCompileCache());
  log.info({ hosts: started.hosts, version: VERSION }, 'ready');
}

function fail(error: unknown): never {
  const problems = error instanceof ConfigError ? error.problems : [problemOf(error)];
  for (const problem of problems) console.error(`gantry daemon: ${problem}`);
  if (!(error instanceof ConfigError || error instanceof EngineError || isSystemError(error))) console.error(error);
  process.exit(error instanceof ConfigError && error.isUsage ? USAGE_EXIT_CODE : 1);
}

function problemOf(error: unknown): string {
  return isSystemError(error) && error.path !== undefined ? `${error.path}: ${messageOf(error)}` : messageOf(error);
}

/** An address in use, a file that cannot be opened: the system's reason is enough. */
function isSystemError(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && 'code' in error && 'syscall' in error;
}

/** Flags and file are read anew. Whatever is wrong with them is logged, and the old settings stay in force. */
function reload(daemon: Daemon, flags: readonly string[], log: Logger): void {
  try {
    daemon.reload(readSettings(flags));
  } catch (error) {
    const reason = error instanceof ConfigError ? { problems: error.problems } : { err: error };
    log.error(reason, 'the configuration was not reloaded: the old settings stay in force');
  }
}

/** The first signal ends in order, the second at once. */
function endOnSignals(end: () => Promise<void>): void {
  let ending = false;
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => {
      if (ending) process.exit(1);
      ending = true;
      end().then(
        () => process.exit(0),
        (error: unknown) => {
          console.error(error);
          process.exit(1);
        },
      );
    });
  }
}
