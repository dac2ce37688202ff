/**
 * `./gantry demo [cluster|gateway]`.
 *
 * The work runs in a session of its own: Ctrl-C at a terminal goes to all processes there, and would end daemons and tools
 * amid the clean-up. It gets SIGTERM for each signal of this one.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

const [name = 'engine'] = process.argv.slice(2);
const work = spawn(process.execPath, [join(import.meta.dirname, `${name}.ts`)], {
  detached: true,
  stdio: ['ignore', 'inherit', 'inherit'],
});
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => work.kill('SIGTERM'));
const [code] = (await once(work, 'exit')) as [number | null];
process.exitCode = code ?? 1;
