import { createReadStream } from 'node:fs';
import { open, readFile } from 'node:fs/promises';
import { join } from 'node:path';

import type { Dialect } from '../../buildfile/dialect.ts';
import { MAX_FILE_BYTES } from '../../buildfile/limits.ts';
import type { Engine } from '../../engine.ts';
import { addressOf, fetchFile } from '../../images/import/fetch.ts';
import type { Report } from '../../images/progress/progress.ts';
import { compressionOf } from '../../layers/threads/compression.ts';
import { EngineError } from '../../lib/errors.ts';
import { gitAddress } from './git-address.ts';
import { gitArchive } from './git.ts';

type Needs = Pick<Engine, 'archives'>;
type How = Readonly<{
  folder: string;
  report: Report;
  signal: AbortSignal;
  /** The folder `.git` of a repository is part of the context. Default: in the classic dialect. */
  keepsGitFolder?: boolean;
}>;

/** A context that is not in the request: an archive, or a Buildfile alone. */
type RemoteContext = Readonly<{ archive: AsyncIterable<Uint8Array> } | { text: string }>;

const TYPES = /^(?:application\/(?:(?:x-)?tar|octet-stream|(?:x-)?(?:gzip|bzip2?|xz|zstd))|text\/plain)\s*(?:;|$)/i;

/** A Git repository or a file of a web server. Throws `invalid` for anything else. */
export async function remoteContext(
  engine: Needs,
  remote: string,
  how: How,
  dialect: Dialect = 'classic',
): Promise<RemoteContext> {
  const repository = gitAddress(remote, dialect);
  if (repository !== undefined) {
    const keepsGitFolder = repository.keepsGitFolder ?? how.keepsGitFolder ?? dialect === 'classic';
    return { archive: await gitArchive(engine, repository, { ...how, keepsGitFolder }) };
  }
  if (!/^https?:\/\//i.test(remote)) {
    throw new EngineError('invalid', `remoteURL (${remote}) could not be recognized as URL`);
  }
  const { body, headers, url } = await fetchFile(remote, { signal: how.signal });
  const type = headers['content-type'] ?? '';
  if (type !== '' && !TYPES.test(type)) {
    throw new EngineError(
      'invalid',
      `cannot build from ${addressOf(url)}: unsupported Content-Type ${JSON.stringify(type)}`,
    );
  }
  const file = join(how.folder, 'remote');
  const { sizeBytes } = await engine.archives.receive(body, file, how.signal);
  if (await isArchive(file)) return { archive: createReadStream(file) };
  if (sizeBytes > MAX_FILE_BYTES)
    throw new EngineError('invalid', `${addressOf(url)} is neither an archive nor a Buildfile`);
  return { text: await readFile(file, 'utf8') };
}

async function isArchive(path: string): Promise<boolean> {
  if ((await compressionOf(path)) !== 'none') return true;
  await using file = await open(path, 'r');
  const { buffer, bytesRead } = await file.read(Buffer.alloc(5), 0, 5, 257);
  return bytesRead === 5 && buffer.toString('latin1') === 'ustar';
}
