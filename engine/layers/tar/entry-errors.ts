import { hasCode } from '../../lib/errors.ts';
import { quotePath } from './entry-names.ts';
import { badArchive, type TarEntry } from './tar-header.ts';

/** Explains a failure of the kernel in terms of the archive. */
export function explainEntryError(error: unknown, entry: TarEntry): unknown {
  const name = quotePath(entry.path);
  if (hasCode(error, 'EXDEV') || hasCode(error, 'ELOOP')) {
    return badArchive(`${name} is written through a link that leads out of the root`, error);
  }
  if (hasCode(error, 'ENOTDIR') || hasCode(error, 'EEXIST')) {
    return badArchive(`${name} is below something that is not a folder`, error);
  }
  if (hasCode(error, 'ENAMETOOLONG')) return badArchive(`the name ${name.slice(0, 80)}… is too long`, error);
  if (hasCode(error, 'EFBIG')) return badArchive(`${name} is larger than a file can be`, error);
  if (hasCode(error, 'ENOENT') && entry.type === 'link') {
    return badArchive(`${name} is a link to ${quotePath(entry.linkPath)}, which does not exist`, error);
  }
  if (hasCode(error, 'EPERM') && entry.type === 'link') {
    return badArchive(`${name} is a link to ${quotePath(entry.linkPath)}, which is a folder`, error);
  }
  return error;
}
