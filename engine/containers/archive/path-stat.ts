import type { PathStat } from '../../copies/messages.ts';
import { fileTime } from './file-time.ts';

/** The bits of Go's os.FileMode above the permissions, which clients test. */
const GO = {
  directory: 2 ** 31,
  symlink: 2 ** 27,
  device: 2 ** 26,
  namedPipe: 2 ** 25,
  socket: 2 ** 24,
  setuid: 2 ** 23,
  setgid: 2 ** 22,
  charDevice: 2 ** 21,
  sticky: 2 ** 20,
} as const;

const TYPES: Readonly<Record<number, number>> = {
  0o040000: GO.directory,
  0o120000: GO.symlink,
  0o060000: GO.device,
  0o020000: GO.device + GO.charDevice,
  0o010000: GO.namedPipe,
  0o140000: GO.socket,
};

/** A mode of the kernel as Go has it. */
function goFileMode(mode: number): number {
  return (
    (TYPES[mode & 0o170000] ?? 0) +
    (mode & 0o777) +
    (mode & 0o4000 ? GO.setuid : 0) +
    (mode & 0o2000 ? GO.setgid : 0) +
    (mode & 0o1000 ? GO.sticky : 0)
  );
}

/** The path-stat headers: the specification's name and Docker's. */
export function pathStatHeaders({ name, sizeBytes, mode, mtimeNs, linkTarget }: PathStat): Record<string, string> {
  const mtime = fileTime(mtimeNs);
  const json = JSON.stringify({ name, size: sizeBytes, mode: goFileMode(mode), mtime, linkTarget });
  const value = Buffer.from(json).toString('base64');
  return { 'X-Engine-Container-Path-Stat': value, 'X-Docker-Container-Path-Stat': value };
}
