import { execFile } from 'node:child_process';
import { createReadStream } from 'node:fs';
import { mkdir, realpath, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

import type { Archives } from '../../layers/threads/archives.ts';
import { EngineError, hasCode } from '../../lib/errors.ts';

type Needs = { archives: Archives };
type How = Readonly<{ folder: string; signal: AbortSignal }>;

const execute = promisify(execFile);
const PROTOCOLS = 'http:https:git';
/** No settings of the machine or a user, no prompts, no transports but those of the network. */
const SETTINGS = [
  ...['-c', 'core.hooksPath=/dev/null', '-c', 'credential.helper=', '-c', 'protocol.allow=never'],
  ...['-c', 'protocol.http.allow=always', '-c', 'protocol.https.allow=always', '-c', 'protocol.git.allow=always'],
  ...['-c', 'http.lowSpeedLimit=1', '-c', 'http.lowSpeedTime=120', '-c', 'safe.directory=*'],
];
const PROXIES = ['http_proxy', 'https_proxy', 'no_proxy', 'HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY'];

/** A repository, `address#ref:folder`, as an archive of one checkout. Throws `invalid` and `failed`. */
export async function gitArchive(engine: Needs, remote: string, how: How): Promise<AsyncIterable<Uint8Array>> {
  const { url, ref, folder } = addressOf(remote);
  const checkout = join(how.folder, 'checkout');
  await mkdir(checkout, { mode: 0o700 });
  const git = async (...words: string[]): Promise<void> => await runGit(checkout, words, how.signal);
  await git('init', '--quiet');
  await git('remote', 'add', 'origin', url);
  try {
    await git('fetch', '--quiet', '--depth', '1', 'origin', '--', ref);
    await git('checkout', '--quiet', 'FETCH_HEAD');
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    // Some servers have no shallow copies, and none gives a commit by the beginning of its id.
    await git('fetch', '--quiet', 'origin');
    await git('checkout', '--quiet', ref, '--');
  }
  await git('submodule', '--quiet', 'update', '--init', '--recursive', '--depth', '1');
  const root = await folderIn(checkout, folder);
  const file = join(how.folder, 'checkout.tar');
  await engine.archives.packLayer(root, [], file, 'none');
  return createReadStream(file);
}

function addressOf(remote: string): { url: string; ref: string; folder: string } {
  const [address = '', fragment = ''] = remote.split(/#(.*)/s, 2);
  const [ref = '', folder = ''] = fragment.split(/:(.*)/s, 2);
  if (address.startsWith('git@')) {
    throw new EngineError('invalid', `unable to clone ${address}: only http, https and git are supported`);
  }
  // The name must not be read as an option of git.
  if (ref.startsWith('-')) throw new EngineError('invalid', `invalid refspec: ${ref}`);
  return { url: address.startsWith('github.com/') ? `https://${address}` : address, ref: ref || 'HEAD', folder };
}

async function runGit(directory: string, words: readonly string[], signal: AbortSignal): Promise<void> {
  const proxies = Object.fromEntries(PROXIES.flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : [])));
  try {
    await execute('git', [...SETTINGS, ...words], {
      cwd: directory,
      signal,
      env: {
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
      },
    });
  } catch (error) {
    signal.throwIfAborted();
    if (hasCode(error, 'ENOENT')) throw new EngineError('failed', 'the program git is not installed', { cause: error });
    const said = withoutNames((error as { stderr?: string }).stderr?.trim() ?? String(error));
    throw new EngineError('failed', `unable to prepare context: git ${words[0]}: ${said}`, { cause: error });
  }
}

/** Addresses, also those of proxies, without names and passwords. */
function withoutNames(text: string): string {
  return text.replaceAll(/:\/\/[^\s'"/]*@/g, '://');
}

/** A folder of the checkout; links that lead out of it are refused. */
async function folderIn(checkout: string, folder: string): Promise<string> {
  try {
    const [root, path] = await Promise.all([realpath(checkout), realpath(join(checkout, folder))]);
    const isInside = path === root || path.startsWith(`${root}/`);
    if (isInside && (await stat(path)).isDirectory()) return path;
  } catch (error) {
    if (!hasCode(error, 'ENOENT') && !hasCode(error, 'ENOTDIR')) throw error;
  }
  throw new EngineError(
    'invalid',
    `error setting git context, ${JSON.stringify(folder)} not within git root or not a folder`,
  );
}
