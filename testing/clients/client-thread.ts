import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { Worker } from 'node:worker_threads';

import { ownClient, type Outcome } from './own-client.ts';

/**
 * Like `gantry`, but runs the command line in a thread, which costs a quarter of a process's time: for tests of many lines
 * that need no terminal and no signal.
 */
export async function gantryInThread(engine: { socketPath: string }, words: readonly string[]): Promise<Outcome> {
  const env = { ...process.env, GANTRY_HOST: `unix://${engine.socketPath}` };
  const thread = new Worker(ownClient, { argv: [...words], env, stdin: true, stdout: true, stderr: true });
  thread.stdin!.end();
  const [[code], stdout, stderr] = await Promise.all([
    once(thread, 'exit') as Promise<[number]>,
    text(thread.stdout),
    text(thread.stderr),
  ]);
  return { stdout, stderr, code };
}
