import { ConfigError } from './config/read.ts';
import { backupDatabase } from './db/backup.ts';
import { systemClock } from './lib/clock.ts';
import { EngineError } from './lib/errors.ts';
import { readSettings } from './settings.ts';
import { hideNewFiles } from './system/roots.ts';

const USAGE = `Usage: gantry backup [--data-root FOLDER] [--config-file FILE] FILE

Copies the daemon's database into FILE, also while the daemon runs. The flags are the daemon's.
docs/operations.md says what else belongs to a backup, and how it is restored.`;

const argv = process.argv.slice(2);
const file = argv.at(-1);
if (file === undefined || file.startsWith('-')) {
  console.log(USAGE);
  process.exit(argv.includes('--help') || argv.includes('-h') ? 0 : 2);
}
try {
  hideNewFiles();
  await backupDatabase(readSettings(argv.slice(0, -1)).dataRoot, file, systemClock.now());
} catch (error) {
  if (!(error instanceof ConfigError || error instanceof EngineError)) throw error;
  for (const problem of error instanceof ConfigError ? error.problems : [error.message]) {
    console.error(`gantry backup: ${problem}`);
  }
  process.exit(1);
}
