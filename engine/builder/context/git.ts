import { createReadStream } from 'node:fs';
import { mkdir, readFile, realpath, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';

import type { Engine } from '../../engine.ts';
import { EngineError, hasCode } from '../../lib/errors.ts';
import type { GitAddress } from './git-address.ts';
import { runGit } from './git-process.ts';

type Needs = Pick<Engine, 'archives'>;
type How = Readonly<{ folder: string; signal: AbortSignal }>;

/** The id of a commit, or the beginning of one. */
const COMMIT = /^[0-9a-f]{4,40}$/;

/** A repository as an archive of one checkout, with its `.git` or without it. Throws `invalid` and `failed`. */
export async function gitArchive(
  engine: Needs,
  address: GitAddress,
  how: How & Readonly<{ keepsGitFolder: boolean }>,
): Promise<AsyncIterable<Uint8Array>> {
  const root = await checkedOut(address, how);
  if (!how.keepsGitFolder) await rm(join(root, '.git'), { recursive: true, force: true });
  const file = join(how.folder, 'checkout.tar');
  await engine.archives.packLayer(root, [], file, 'none', how.signal);
  return createReadStream(file);
}

/** A folder with the files of one checkout, in `how.folder`, which is removed with the build. Throws `invalid` and `failed`. */
export async function checkedOut(address: GitAddress, how: How): Promise<string> {
  const { url, ref, folder, submodules, checksum } = address;
  const checkout = join(how.folder, 'checkout');
  await mkdir(checkout, { mode: 0o700 });
  const git = async (...words: string[]): Promise<void> => await runGit(checkout, words, how.signal);
  await git('init', '--quiet');
  await git('remote', 'add', 'origin', url);
  await fetchRef(git, ref);
  await refuseOtherCommit(checkout, checksum);
  const update = ['submodule', '--quiet', 'update', '--init', '--recursive'];
  if (submodules)
    await firstToWork([async () => await git(...update, '--depth', '1'), async () => await git(...update)]);
  return await folderIn(checkout, folder);
}

/** The checkout is of a commit, whose id git keeps in this file. */
async function refuseOtherCommit(checkout: string, checksum: string): Promise<void> {
  if (checksum === '') return;
  const commit = (await readFile(join(checkout, '.git/HEAD'), 'utf8')).trim();
  if (commit.startsWith(checksum)) return;
  throw new EngineError('invalid', `expected checksum to match ${checksum}, got ${commit}`);
}

/** Checks out a ref. A plain web server has no shallow copies, and may lack the file that names the default branch. */
async function fetchRef(git: (...words: string[]) => Promise<void>, ref: string): Promise<void> {
  const fetched =
    (...words: string[]) =>
    async () => {
      await git('fetch', '--quiet', ...words);
      await git('checkout', '--quiet', 'FETCH_HEAD');
    };
  const attempts = [fetched('--depth', '1', 'origin', '--', ref), fetched('origin', '--', ref)];
  const branches = ref === 'HEAD' ? ['master', 'main'] : [];
  for (const branch of branches) attempts.push(fetched('origin', '--', branch));
  if (COMMIT.test(ref)) {
    // No server gives a commit by the beginning of its id.
    attempts.push(async () => {
      await git('fetch', '--quiet', 'origin');
      await git('checkout', '--quiet', ref, '--');
    });
  }
  await firstToWork(attempts);
}

/** Makes attempts until one works. Throws the failure of the last one. */
async function firstToWork(attempts: readonly (() => Promise<void>)[]): Promise<void> {
  for (const [index, attempt] of attempts.entries()) {
    try {
      await attempt();
      return;
    } catch (error) {
      if (!(error instanceof EngineError) || index === attempts.length - 1) throw error;
    }
  }
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
