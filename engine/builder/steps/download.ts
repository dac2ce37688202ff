import { isUtf8 } from 'node:buffer';
import { mkdir, stat, utimes } from 'node:fs/promises';
import { join, posix } from 'node:path';

import type { Copy } from '../../buildfile/instruction.ts';
import type { SourceFound } from '../../copies/transfer/sources.ts';
import { fetchFile } from '../../images/import/fetch.ts';
import { EngineError } from '../../lib/errors.ts';
import { newId, shortId } from '../../lib/ids.ts';
import { decodePercent } from '../../lib/notations/percent.ts';
import type { Build } from '../build.ts';
import type { StageOutput } from '../output.ts';

type Downloaded = Readonly<{ root: () => Promise<string>; found: readonly SourceFound[]; extracts: boolean }>;

const UNNAMED = '__unnamed__';
/** The most that file systems take. */
const MAX_NAME_BYTES = 255;
const MAX_SHOWN_LENGTH = 200;

/** A file of a web server, under the last part of its address, in a folder of its own. Only `--unpack` extracts it. */
export async function downloaded(
  { engine, folder, signal, plan: { dialect } }: Build,
  output: StageOutput,
  url: string,
  { destination, checksum, unpacks = false }: Copy,
): Promise<Downloaded> {
  const root = join(folder, shortId(newId()));
  const fromAddress = nameInAddress(url);
  await mkdir(root, { mode: 0o755 });
  const { body, headers } = await fetchFile(url, { signal });
  const name = fromAddress ?? nameInHeaders(url, headers);
  if (name === undefined && destination.endsWith('/') && dialect === 'classic') {
    throw new EngineError('invalid', `cannot determine filename for source ${url}`);
  }
  const file = join(root, name ?? UNNAMED);
  const { digest } = await engine.archives.receive(body, file, signal);
  refuseOtherDigest(digest, checksum);
  output.note('\n');
  const modified = Date.parse(headers['last-modified'] ?? '');
  await utimes(file, 0, Number.isNaN(modified) ? 0 : modified / 1000);
  if (!(await stat(file)).isFile()) throw new EngineError('failed', `${url} is not a file`);
  const found = await engine.copies.findSources(root, { words: ['*'], dialect }, signal); // its name may be like a pattern
  return {
    root: async () => await Promise.resolve(root),
    found: found.map(({ path, sum }) => ({ path, sum: sum.replace(/^file:/, '') })),
    extracts: unpacks,
  };
}

function refuseOtherDigest(digest: string, checksum: string): void {
  if (checksum === '' || digest === checksum) return;
  throw new EngineError('invalid', `digest mismatch ${digest}: ${checksum}`);
}

/** Throws `invalid` for an address, or a name in it, that is none. */
function nameInAddress(url: string): string | undefined {
  const { pathname } = URL.canParse(url) ? new URL(url) : refuse(url, 'is no address');
  if (pathname.endsWith('/')) return undefined;
  const part = posix.basename(pathname);
  const bytes = decodePercent(part) ?? refuse(url, `has an invalid escape in ${JSON.stringify(shorten(part))}`);
  if (!isUtf8(bytes)) refuse(url, 'has a file name that is not UTF-8');
  return fileName(url, posix.basename(bytes.toString()));
}

function nameInHeaders(url: string, headers: Readonly<Record<string, string>>): string | undefined {
  const [, quoted, plain] = /filename=(?:"([^"]*)"|([^;\s]+))/i.exec(headers['content-disposition'] ?? '') ?? [];
  return fileName(url, posix.basename(quoted ?? plain ?? ''));
}

function fileName(url: string, name: string): string | undefined {
  if (name.includes('\0')) refuse(url, 'has a file name with a NUL character');
  if (Buffer.byteLength(name) > MAX_NAME_BYTES) refuse(url, `has a file name of more than ${MAX_NAME_BYTES} bytes`);
  return name === '' || name === '..' || name === '.' ? undefined : name;
}

function refuse(url: string, why: string): never {
  const shown = url.replace(/^(https?:\/\/)[^/]*@/i, '$1');
  throw new EngineError('invalid', `the address ${shorten(shown)} ${why}`);
}

function shorten(text: string): string {
  return text.length <= MAX_SHOWN_LENGTH ? text : `${text.slice(0, MAX_SHOWN_LENGTH)}…`;
}
