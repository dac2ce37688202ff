import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { promisify } from 'node:util';

const PARSER = '/sbin/apparmor_parser';
const LOADED = '/sys/kernel/security/apparmor/profiles';

const execute = promisify(execFile);

/** Whether the kernel confines by AppArmor, and the program that loads profiles is installed; as in dockerd. */
export function hasAppArmor(): boolean {
  return existsSync(PARSER) && existsSync(LOADED) && isEnabled();
}

/** The kernel's list has a profile in each line, such as `gantry-default (enforce)`. */
export function isProfileLoaded(name: string): boolean {
  const lines = readFileSync(LOADED, 'utf8').split('\n');
  return lines.some((line) => line.startsWith(`${name} (`));
}

/** Loads a profile, replacing an older one of its name. Throws with the parser's message. */
export async function loadProfile(text: string): Promise<void> {
  // Without the parser's cache, which would be used even for a changed text.
  const running = execute(PARSER, ['--replace', '--skip-cache']);
  running.child.stdin!.on('error', () => undefined).end(text); // it may end before it has read all
  await running;
}

function isEnabled(): boolean {
  try {
    return readFileSync('/sys/module/apparmor/parameters/enabled', 'utf8').startsWith('Y');
  } catch {
    return false;
  }
}
