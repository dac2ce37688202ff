import { readable, type BytePath } from '../../host/files/openat.ts';
import { badArchive } from './tar-header.ts';

/** A name of the archive relative to its root, without `.` and doubled slashes. Throws for a name that leads out. */
export function innerPath(path: BytePath, what: string): BytePath {
  if (path.startsWith('/')) throw badArchive(`${what} ${shown(path)} is absolute`);
  if (path === '') throw badArchive(`${what} is empty`);
  const parts = path.split('/').filter((part) => part !== '' && part !== '.');
  if (parts.includes('..')) throw badArchive(`${what} ${shown(path)} leads out of the root`);
  return parts.join('/');
}

/** As an error message shows it. */
export function shown(path: BytePath): string {
  return JSON.stringify(readable(path));
}
