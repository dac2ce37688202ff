import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

import { EngineError } from '../../lib/errors.ts';

const PROTOCOLS = 'http:https:git';
/** No settings of the machine or a user, no prompts, no work behind the command, no transports but those of the network. */
const SETTINGS = [
  ...['-c', 'core.hooksPath=/dev/null', '-c', 'credential.helper=', '-c', 'protocol.allow=never'],
  ...['-c', 'protocol.http.allow=always', '-c', 'protocol.https.allow=always', '-c', 'protocol.git.allow=always'],
  ...['-c', 'http.lowSpeedLimit=1', '-c', 'http.lowSpeedTime=120', '-c', 'safe.directory=*'],
  ...['-c', 'gc.auto=0', '-c', 'maintenance.auto=false'],
];
const PROXIES = ['http_proxy', 'https_proxy', 'no_proxy', 'HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY'];
/**
 * Runs git with the usual umask, because its files go into images. Git starts further processes: the group ends as soon
 * as descriptor 3 is closed, which the death of the daemon does as well.
 */
const SCRIPT = 'umask 022; { read -r _ <&3; kill -KILL 0; } >/dev/null 2>&1 & exec git "$@" 3<&-';
const MAX_COMPLAINT = 4000;

/** Runs git in a checkout; ends with all its children when `signal` aborts. Throws `failed`. */
export async function runGit(directory: string, words: readonly string[], signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  const git = spawn('sh', ['-c', SCRIPT, 'sh', ...SETTINGS, ...words], {
    cwd: directory,
    env: gitEnvironment(directory),
    detached: true, // a group of its own
    stdio: ['ignore', 'ignore', 'pipe', 'pipe'],
  });
  const group = git.stdio[3]!;
  let complaint = '';
  git.stderr!.on('data', (chunk: Buffer) => (complaint = `${complaint}${chunk.toString()}`.slice(-MAX_COMPLAINT)));
  group.on('error', () => undefined); // its other end is gone first
  const end = (): void => void group.destroy();
  signal.addEventListener('abort', end, { once: true });
  git.once('exit', end);
  try {
    const [code] = (await once(git, 'close')) as [number | null];
    signal.throwIfAborted();
    if (code === 0) return;
    if (code === 127) throw new EngineError('failed', 'the program git is not installed');
    throw new EngineError('failed', `unable to prepare context: git ${words[0]}: ${withoutNames(complaint.trim())}`);
  } finally {
    signal.removeEventListener('abort', end);
  }
}

function gitEnvironment(directory: string): NodeJS.ProcessEnv {
  const proxies = Object.fromEntries(PROXIES.flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : [])));
  return {
    PATH: process.env.PATH,
    HOME: directory,
    LANG: 'C.UTF-8',
    GIT_ALLOW_PROTOCOL: PROTOCOLS,
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_DIR: join(directory, '.git'),
    GIT_WORK_TREE: directory,
    GIT_PROTOCOL_FROM_USER: '0',
    GIT_TERMINAL_PROMPT: '0',
    ...proxies,
  };
}

/** Addresses, also those of proxies, without names and passwords. */
function withoutNames(text: string): string {
  return text.replaceAll(/:\/\/[^\s'"/]*@/g, '://');
}
