import assert from 'node:assert/strict';
import { once } from 'node:events';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { Worker } from 'node:worker_threads';

/** Gantry's own command line, as a program of the tests: the bundle under `./gantry test`. */
export const ownClient = process.env['GANTRY_CLIENT'] ?? join(dirname(dirname(import.meta.dirname)), 'cli/main.ts');

export type Outcome = { stdout: string; stderr: string; code: number };

/**
 * Runs a command line against an engine; the outcome includes failures.
 *
 * The program runs in a thread, which costs a quarter of a process's time. Tests of terminals and signals start `ownClient` themselves.
 */
export async function gantry(
  engine: { socketPath: string },
  words: readonly string[],
  options: { stdin?: string; env?: NodeJS.ProcessEnv } = {},
): Promise<Outcome> {
  const env = { ...process.env, GANTRY_HOST: `unix://${engine.socketPath}`, ...options.env };
  const thread = new Worker(ownClient, { argv: [...words], env, stdin: true, stdout: true, stderr: true });
  thread.stdin!.end(options.stdin);
  const [[code], stdout, stderr] = await Promise.all([
    once(thread, 'exit') as Promise<[number]>,
    text(thread.stdout),
    text(thread.stderr),
  ]);
  return { stdout, stderr, code };
}

/** The output of a command line that must succeed. */
export async function said(engine: { socketPath: string }, ...words: string[]): Promise<string> {
  const { stdout, stderr, code } = await gantry(engine, words);
  assert.equal(code, 0, `gantry ${words.join(' ')}: ${stderr}${stdout}`);
  return stdout.trim();
}

/** The outcome of a command line that must be refused, in the form of all refusals. */
export async function refused(engine: { socketPath: string }, ...words: string[]): Promise<Outcome> {
  const outcome = await gantry(engine, words);
  assert.notEqual(outcome.code, 0, `gantry ${words.join(' ')} was not refused`);
  assert.match(outcome.stderr, /^gantry: /);
  return outcome;
}
