import type { FolderEntry } from '../../copies/messages.ts';
import { EngineError, hasCode } from '../../lib/errors.ts';
import type { FileList } from '../schema.ts';
import { fileTime } from './file-time.ts';
import { openFiles, type FilesNeeds, type ViewOfFiles } from './files.ts';
import { explainPathError } from './read.ts';

type FileType = FileList['Entries'][number]['Type'];

const TYPES: ReadonlyMap<number, FileType> = new Map([
  [0o040000, 'directory'],
  [0o120000, 'symlink'],
  [0o100000, 'file'],
  [0o060000, 'device'],
  [0o020000, 'device'],
  [0o010000, 'fifo'],
  [0o140000, 'socket'],
]);

/** Lists a folder of a container with its mounts. Throws `notFound`, and `invalid` for anything but a folder. */
export async function listFiles(engine: FilesNeeds, ref: string, path: string, gone: AbortSignal): Promise<FileList> {
  await using files = await openFiles(engine, ref, { readOnly: 'everything', withMounts: true });
  return await listInView(files, `container ${ref}`, path, gone);
}

/** `owner`: the container or volume, as a message names it. Throws like `listFiles`. */
export async function listInView(
  { view, removed }: ViewOfFiles,
  owner: string,
  path: string,
  gone: AbortSignal,
): Promise<FileList> {
  try {
    const folder = await view.list(path, AbortSignal.any([gone, removed]));
    return { Path: folder.path, Entries: folder.entries.map(present), Truncated: !folder.isComplete };
  } catch (error) {
    removed.throwIfAborted();
    if (hasCode(error, 'ELOOP')) throw new EngineError('invalid', `too many links in ${path}`, { cause: error });
    throw explainPathError(error, owner, path);
  }
}

function present({ name, mode, sizeBytes, mtimeNs, uid, gid, target }: FolderEntry): FileList['Entries'][number] {
  return {
    Name: name,
    Type: TYPES.get(mode & 0o170000) ?? 'file',
    Mode: mode & 0o7777,
    Size: sizeBytes,
    Modified: fileTime(mtimeNs),
    UID: uid,
    GID: gid,
    Target: target,
  };
}
