import { readFileSync } from 'node:fs';

/** A line of the kernel's mount table. `root` is the mounted part of its file system. */
export type Mount = Readonly<{
  id: string;
  parent: string;
  device: string;
  root: string;
  path: string;
  /** Mounts below it propagate to its copies. */
  isShared: boolean;
  /** Mounts below its original propagate to it. */
  isSlave: boolean;
}>;

/** All mounts that this process sees, in mount order; a thread may see others. */
export function mountTable(table = '/proc/self/mountinfo'): Mount[] {
  const lines = readFileSync(table, 'utf8').split('\n');
  return lines.filter((line) => line !== '').map(readLine);
}

/** The mount that holds a path. Links in the path must be resolved. */
export function mountOf(path: string): Mount | undefined {
  const holds = (mount: string): boolean => mount === '/' || path === mount || path.startsWith(`${mount}/`);
  return mountTable()
    .filter((mount) => holds(mount.path))
    .reduce<Mount | undefined>(
      (best, mount) => (mount.path.length >= (best?.path.length ?? 0) ? mount : best),
      undefined,
    );
}

function readLine(line: string): Mount {
  const [id = '', parent = '', device = '', root = '', path = '', , ...fields] = line.split(' ').map(unescape);
  const optional = fields.slice(0, fields.indexOf('-'));
  return {
    id,
    parent,
    device,
    root,
    path,
    isShared: optional.some((field) => field.startsWith('shared:')),
    isSlave: optional.some((field) => field.startsWith('master:')),
  };
}

/** Blanks and backslashes are three octal digits. */
function unescape(text: string): string {
  return text.replaceAll(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)));
}
