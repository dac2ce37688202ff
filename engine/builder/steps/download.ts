import { mkdir, stat, utimes } from 'node:fs/promises';
import { join, posix } from 'node:path';

import type { SourceFound } from '../../copies/transfer/sources.ts';
import { fetchFile } from '../../images/import/fetch.ts';
import { EngineError } from '../../lib/errors.ts';
import { newId, shortId } from '../../lib/ids.ts';
import type { Build } from '../build.ts';
import type { BuildOutput } from '../output.ts';

type Downloaded = Readonly<{ root: () => Promise<string>; found: readonly SourceFound[]; extracts: boolean }>;

const UNNAMED = '__unnamed__';

/** A file of a web server, under the last part of its address, in a folder of its own. It is never extracted. */
export async function downloaded(
  { engine, folder, signal }: Build,
  output: BuildOutput,
  url: string,
  destination: string,
): Promise<Downloaded> {
  const root = join(folder, shortId(newId()));
  await mkdir(root, { mode: 0o755 });
  const { body, headers } = await fetchFile(url, { signal });
  const name = nameOf(url, headers);
  if (name === undefined && destination.endsWith('/')) {
    throw new EngineError('invalid', `cannot determine filename for source ${url}`);
  }
  const file = join(root, name ?? UNNAMED);
  await engine.archives.receive(body, file);
  output.text('\n');
  const modified = Date.parse(headers['last-modified'] ?? '');
  await utimes(file, 0, Number.isNaN(modified) ? 0 : modified / 1000);
  if (!(await stat(file)).isFile()) throw new EngineError('failed', `${url} is not a file`);
  const found = await engine.copies.findSources(root, [name ?? UNNAMED]);
  return {
    root: async () => await Promise.resolve(root),
    found: found.map(({ path, sum }) => ({ path, sum: sum.replace(/^file:/, '') })),
    extracts: false,
  };
}

/** From the address, or else from the server's headers. */
function nameOf(url: string, headers: Readonly<Record<string, string>>): string | undefined {
  const { pathname } = new URL(url);
  const fromPath = pathname.endsWith('/') ? '' : posix.basename(decodeURIComponent(pathname));
  if (fromPath !== '' && fromPath !== '..' && fromPath !== '.') return fromPath;
  const [, quoted, plain] = /filename=(?:"([^"]*)"|([^;\s]+))/i.exec(headers['content-disposition'] ?? '') ?? [];
  const told = posix.basename(quoted ?? plain ?? '');
  return told === '' || told === '..' || told === '.' ? undefined : told;
}
