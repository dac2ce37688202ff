import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';

import type { Copy } from '../../buildfile/instruction.ts';
import { EngineError } from '../../lib/errors.ts';
import { newId, shortId } from '../../lib/ids.ts';
import { gitAddress } from '../context/git-address.ts';
import { checkedOut } from '../context/git.ts';
import type { StageState } from '../stage.ts';
import type { Source } from './copy-sources.ts';

/** The files of a repository for ADD, without its `.git` unless that is wanted. Throws `invalid` and `failed`. */
export async function addedRepository({ build }: StageState, step: Copy, remote: string): Promise<Source> {
  const address = gitAddress(remote, 'buildkit')!;
  const keepsGitFolder = agreed('keep-git-dir', step.keepsGitFolder, address.keepsGitFolder) ?? false;
  const checksum = agreed('checksum', step.checksum || undefined, address.checksum || undefined) ?? '';
  const folder = join(build.folder, shortId(newId()));
  await mkdir(folder, { mode: 0o700 });
  const root = await checkedOut({ ...address, checksum }, { folder, signal: build.signal });
  if (!keepsGitFolder) await rm(join(root, '.git'), { recursive: true, force: true });
  const { excluded } = step;
  const wanted = { words: ['/'], dialect: 'buildkit', excluded } as const;
  const found = await build.engine.copies.findSources(root, wanted, build.signal);
  return { root: async () => await Promise.resolve(root), found, extracts: false };
}

/** The value of a flag and that in the address, of which one is enough. Throws `invalid` for different ones. */
function agreed<T extends string | boolean>(
  name: string,
  flag: T | undefined,
  inAddress: T | undefined,
): T | undefined {
  if (flag !== undefined && inAddress !== undefined && flag !== inAddress) {
    throw new EngineError(
      'invalid',
      name === 'checksum' ? `checksum mismatch "${flag}" != "${inAddress}"` : `inconsistent ${name} configuration`,
    );
  }
  return inAddress ?? flag;
}
