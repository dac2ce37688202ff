import { pino } from 'pino';

import { usage } from './config/flags.ts';
import { ConfigError, readConfig } from './config/read.ts';
import { giveBackMemory, keepMemorySmall } from './host/memory.ts';
import { VERSION } from './version.ts';

const argv = process.argv.slice(2);
if (argv.includes('--help')) {
  console.log(usage());
} else if (argv.includes('--version') || argv.includes('-v')) {
  console.log(`Gantry ${VERSION}`);
} else {
  await main();
}

async function main(): Promise<void> {
  const validate = argv.includes('--validate');
  try {
    const config = readConfig(argv.filter((word) => word !== '--validate'));
    if (validate) {
      console.log('configuration OK');
      return;
    }
    const log = pino({ level: config.logLevel });
    keepMemorySmall();
    const { startDaemon } = await import('./start.ts');
    const daemon = await startDaemon(config, log);
    giveBackMemory();
    log.info({ hosts: config.hosts, version: VERSION }, 'ready');
    endOnSignals(async () => await daemon[Symbol.asyncDispose]());
  } catch (error) {
    const problems =
      error instanceof ConfigError ? error.problems : [error instanceof Error ? error.message : String(error)];
    for (const problem of problems) console.error(`gantry daemon: ${problem}`);
    if (!(error instanceof ConfigError)) console.error(error);
    process.exit(1);
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
