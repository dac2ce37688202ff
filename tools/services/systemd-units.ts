import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';

/** The steps without `--root`. */
export type Machine = Readonly<{ isRoot: boolean; hasSystemd: boolean; systemctl: (...args: string[]) => void }>;

/** For the user; nothing has been done. */
export class InstallError extends Error {}

/** A unit that does not begin with this line was not written by Gantry. */
export function refuseForeign(unit: string, mark: string): void {
  if (existsSync(unit) && !readFileSync(unit, 'utf8').startsWith(mark)) {
    throw new InstallError(`${unit} was not written by Gantry, and stays as it is`);
  }
}

/** systemd reads it only at its next start, and a truncated one is written again. */
export function write(file: string, text: string): void {
  mkdirSync(dirname(file), { recursive: true, mode: 0o755 });
  writeFileSync(file, text, { mode: 0o644 });
}

/** A word of a command line for systemd, with specifiers, variables and quotes escaped. */
export function quoted(word: string): string {
  const plain = word
    .replaceAll('%', '%%')
    .replaceAll('$', '$$$$')
    .replaceAll('\\', '\\\\')
    .replaceAll('"', String.raw`\"`);
  return /^[\w@%+=:,./-]+$/.test(plain) ? plain : `"${plain}"`;
}
