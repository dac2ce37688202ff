import { MAX_FILE_BYTES, refuseAbove } from '../../buildfile/limits.ts';
import { EngineError } from '../../lib/errors.ts';
import { syncedFiles, type Wanted } from '../session/file-sync.ts';
import type { Session } from '../session/session.ts';

const DEFAULT_NAME = 'Dockerfile';
/** Ours, which is read where the client names no file and sends none of docker's. */
const OWN_NAME = 'Buildfile';
const IGNORE_FILES: readonly string[] = ['.buildignore', '.dockerignore'];

type From = Pick<Wanted, 'folder' | 'onBytes'>;

/** The file of a build, and what it leaves out of the context. */
export type Source = Readonly<{ name: string; text: string; excluded: readonly string[] | undefined }>;

/** Asks a client for the Buildfile, and the ignore file of its own. Throws `invalid` if it has none. */
export async function readSource(session: Session, from: From, file: string, signal: AbortSignal): Promise<Source> {
  const wanted = file === '' ? DEFAULT_NAME : file;
  const names = [wanted, ...(wanted === DEFAULT_NAME ? [DEFAULT_NAME.toLowerCase(), OWN_NAME] : [])];
  const files = await textsOf(session, { ...from, paths: [...names, `${wanted}.dockerignore`] }, signal);
  const name = names.find((each) => files.has(each));
  if (name === undefined) {
    throw new EngineError('invalid', `failed to read dockerfile: open ${wanted}: no such file or directory`);
  }
  const text = files.get(name)!;
  if (text === '') throw new EngineError('invalid', `the Dockerfile (${name}) cannot be empty`);
  const ignore = files.get(`${name}.dockerignore`);
  return { name, text, excluded: ignore === undefined ? undefined : patternsIn(ignore) };
}

/** The lines of the context's ignore file. */
export async function readIgnoreFile(session: Session, from: From, signal: AbortSignal): Promise<readonly string[]> {
  const files = await textsOf(session, { ...from, paths: IGNORE_FILES }, signal);
  const name = IGNORE_FILES.find((each) => files.has(each));
  return name === undefined ? [] : patternsIn(files.get(name)!);
}

async function textsOf(session: Session, wanted: Wanted, signal: AbortSignal): Promise<Map<string, string>> {
  const texts = new Map<string, string>();
  let left = MAX_FILE_BYTES;
  for await (const { stat, content } of syncedFiles(session, wanted, signal)) {
    left -= stat.size;
    if (left < 0) refuseAbove(MAX_FILE_BYTES, stat.size, stat.path, 'bytes');
    if (left < 0) throw new EngineError('invalid', 'the files of the build definition are too long');
    const text = await textOf(stat.size, content);
    if (text !== '' || stat.linkName === '') texts.set(stat.path, text);
  }
  return texts;
}

/** In memory of the file's size, however small its pieces are. A link or a folder has no content, whatever its size. */
async function textOf(size: number, content: AsyncIterable<Uint8Array>): Promise<string> {
  const whole = Buffer.allocUnsafeSlow(size);
  let bytes = 0;
  for await (const piece of content) {
    whole.set(piece, bytes);
    bytes += piece.length;
  }
  return whole.toString('utf8', 0, bytes);
}

/** As the client matches them. */
function patternsIn(text: string): string[] {
  return text
    .replace(/^\ufeff/, '')
    .split('\n')
    .filter((line) => !line.startsWith('#'))
    .map((line) => line.trim())
    .filter((line) => line !== '')
    .map((line) => line.replace(/^(!?)\s*\/+(?=.)/, '$1'));
}
