import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';

import { EXIT, Exit } from '../exit-codes.ts';
import { reasonOf } from '../failures.ts';
import type { Login } from './docker-config.ts';

/** The user name under which helpers keep tokens. */
const TOKEN = '<token>';

export async function readFromHelper(name: string, key: string): Promise<Login | undefined> {
  const { stdout, code } = await run(name, 'get', key);
  if (code !== 0) {
    if (/credentials not found/i.test(stdout)) return undefined;
    throw new Exit(EXIT.failed, `docker-credential-${name}: ${stdout.trim() || `ended with ${code}`}`);
  }
  const { Username = '', Secret = '' } = JSON.parse(stdout) as { Username?: string; Secret?: string };
  return Username === TOKEN ? { identitytoken: Secret } : { username: Username, password: Secret };
}

export async function storeInHelper(name: string, key: string, login: Login): Promise<void> {
  const { username = '', password = '', identitytoken } = login;
  const kept = identitytoken ? { Username: TOKEN, Secret: identitytoken } : { Username: username, Secret: password };
  await mustRun(name, 'store', JSON.stringify({ ServerURL: key, ...kept }));
}

export async function eraseInHelper(name: string, key: string): Promise<void> {
  await mustRun(name, 'erase', key);
}

async function mustRun(name: string, action: string, input: string): Promise<void> {
  const { stdout, code } = await run(name, action, input);
  if (code !== 0) throw new Exit(EXIT.failed, `docker-credential-${name}: ${stdout.trim() || `ended with ${code}`}`);
}

/** Helpers read from stdin, and write errors to stdout. */
async function run(name: string, action: string, input: string): Promise<{ stdout: string; code: number }> {
  const child = spawn(`docker-credential-${name}`, [action], { stdio: ['pipe', 'pipe', 'inherit'] });
  const closed = once(child, 'close') as Promise<[number | null]>;
  child.stdin.on('error', () => undefined).end(input); // a helper that does not read reports the error by its code
  try {
    const [stdout, [code]] = await Promise.all([text(child.stdout), closed]);
    return { stdout, code: code ?? EXIT.failed };
  } catch (error) {
    throw new Exit(EXIT.failed, `docker-credential-${name} cannot be run: ${reasonOf(error)}`);
  }
}
