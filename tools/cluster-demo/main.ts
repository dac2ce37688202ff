/**
 * `./gantry demo cluster`: three machines, a service on them, the loss of a machine, and an update under requests.
 *
 * The work runs in a session of its own: Ctrl-C at a terminal goes to all processes there, and would end daemons and tools
 * amid the clean-up. It gets SIGTERM for each signal of this one.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

const work = spawn(process.execPath, [join(import.meta.dirname, 'scenario.ts')], {
  detached: true,
  stdio: ['ignore', 'inherit', 'inherit'],
});
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => work.kill('SIGTERM'));
const [code] = (await once(work, 'exit')) as [number | null];
process.exitCode = code ?? 1;
