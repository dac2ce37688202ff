import type { TakeChunk } from '../../copies/copies.ts';
import type { PathStat } from '../../copies/messages.ts';
import type { Events } from '../../events/events.ts';
import { EngineError, hasCode, refuseIf } from '../../lib/errors.ts';
import { emitIfThere } from '../container-events.ts';
import { openFiles, type FilesNeeds, type ViewOfFiles } from './files.ts';

/** A path of a container or volume that is about to be sent. */
export type OpenArchive = AsyncDisposable &
  Readonly<{
    stat: PathStat;
    /** Throws when `signal` is aborted, the container is removed, or a file cannot be read. */
    send: (take: TakeChunk, signal: AbortSignal) => Promise<void>;
  }>;

/**
 * The facts about a path. Throws `notFound`, and `invalid` for a file whose path ends in a slash. Specification,
 * endpoint 22.
 */
export async function statPath(engine: FilesNeeds, ref: string, path: string): Promise<PathStat> {
  refuseEmptyPath(path);
  await using files = await openFiles(engine, ref, { readOnly: 'everything', withMounts: true });
  return await statInView(files, `container ${ref}`, path);
}

/** A path with all below it as an archive, with the errors of `statPath`. Specification, endpoint 23. */
export async function openArchive(
  engine: FilesNeeds & { events: Events },
  ref: string,
  path: string,
): Promise<OpenArchive> {
  refuseEmptyPath(path);
  await using undo = new AsyncDisposableStack();
  const files = undo.use(await openFiles(engine, ref, { readOnly: 'everything', withMounts: true }));
  const stat = await statInView(files, `container ${ref}`, path);
  emitIfThere(engine, 'archive-path', files.container.id);
  const parts = undo.move();
  return {
    stat,
    send: async (take, signal) => await sendFiles(files, path, take, signal),
    [Symbol.asyncDispose]: async () => await parts.disposeAsync(),
  };
}

export async function sendFiles(
  { view, removed }: ViewOfFiles,
  path: string | undefined,
  take: TakeChunk,
  signal: AbortSignal,
): Promise<void> {
  try {
    await view.pack(path, take, AbortSignal.any([signal, removed]));
  } catch (error) {
    removed.throwIfAborted();
    throw error;
  }
}

export function refuseEmptyPath(path: string): void {
  refuseIf(path === '', 'bad parameter: path cannot be empty');
}

/** `owner`: the container or volume, as a message names it. */
export async function statInView({ view }: ViewOfFiles, owner: string, path: string): Promise<PathStat> {
  try {
    return await view.stat(path);
  } catch (error) {
    throw explainPathError(error, owner, path);
  }
}

/** The kernel's refusals to follow a path, in dockerd's words. */
export function explainPathError(error: unknown, owner: string, path: string): unknown {
  const isMissing = ['ENOENT', 'ENOTDIR', 'ENAMETOOLONG'].some((code) => hasCode(error, code));
  if (isMissing) return new EngineError('notFound', `Could not find the file ${path} in ${owner}`);
  if (hasCode(error, 'ELOOP')) return new EngineError('invalid', `too many links in ${path}`);
  return error;
}
