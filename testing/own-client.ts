import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';

const execute = promisify(execFile);

/** Gantry's own command line, as a program of the tests. */
export const ownClient = join(dirname(import.meta.dirname), 'cli/main.ts');

export type Outcome = { stdout: string; stderr: string; code: number };

/** Runs a command line against an engine; the outcome includes failures. */
export async function gantry(
  engine: { socketPath: string },
  words: readonly string[],
  options: { stdin?: string; env?: NodeJS.ProcessEnv } = {},
): Promise<Outcome> {
  const env = { ...process.env, GANTRY_HOST: `unix://${engine.socketPath}`, ...options.env };
  const running = execute(process.execPath, ['--', ownClient, ...words], { env });
  running.child.stdin!.end(options.stdin);
  try {
    return { ...(await running), code: 0 };
  } catch (error) {
    const failed = error as Outcome;
    if (typeof failed.code !== 'number') throw error;
    return { stdout: failed.stdout, stderr: failed.stderr, code: failed.code };
  }
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
