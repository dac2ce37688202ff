import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { getSystemErrorMessage } from 'node:util';

import { bind, check, SystemError } from '../libc.ts';

const MS = {
  ro: 1,
  nosuid: 2,
  nodev: 4,
  noexec: 8,
  sync: 0x10,
  remount: 0x20,
  mand: 0x40,
  dirsync: 0x80,
  noatime: 0x400,
  nodiratime: 0x800,
  bind: 0x1000,
  recursive: 0x4000,
  unbindable: 1 << 17,
  private: 1 << 18,
  slave: 1 << 19,
  shared: 1 << 20,
  relatime: 1 << 21,
  strictatime: 1 << 24,
} as const;
const PROPAGATION = MS.unbindable | MS.private | MS.slave | MS.shared;

/** The flags that a word of `mount -o` sets; negative ones are cleared. */
const WORDS: Readonly<Record<string, number>> = {
  ro: MS.ro,
  rw: -MS.ro,
  suid: -MS.nosuid,
  nosuid: MS.nosuid,
  dev: -MS.nodev,
  nodev: MS.nodev,
  exec: -MS.noexec,
  noexec: MS.noexec,
  sync: MS.sync,
  async: -MS.sync,
  dirsync: MS.dirsync,
  mand: MS.mand,
  nomand: -MS.mand,
  atime: -MS.noatime,
  noatime: MS.noatime,
  diratime: -MS.nodiratime,
  nodiratime: MS.nodiratime,
  relatime: MS.relatime,
  norelatime: -MS.relatime,
  strictatime: MS.strictatime,
  nostrictatime: -MS.strictatime,
  bind: MS.bind,
  rbind: MS.bind | MS.recursive,
  unbindable: MS.unbindable,
  runbindable: MS.unbindable | MS.recursive,
  private: MS.private,
  rprivate: MS.private | MS.recursive,
  shared: MS.shared,
  rshared: MS.shared | MS.recursive,
  slave: MS.slave,
  rslave: MS.slave | MS.recursive,
};

/** Mounts of these end within milliseconds; others wait for a disk or a network. */
const QUICK = new Set(['', 'none', 'bind', 'tmpfs', 'ramfs', 'overlay', 'proc', 'sysfs']);
/** The wait for a server that does not answer. */
const TIMEOUT_MS = 60_000;

const mount = bind<[string, string, string, bigint, string | null], number>(
  'int mount(const char *source, const char *target, const char *type, uint64_t flags, const char *options)',
);

export type MountRequest = Readonly<{ type: string; device: string; options: string }>;

/** The kernel's flags in a text of options such as `ro,size=1m`, and the options for the file system. */
export function readMountWords(text: string): { flags: number; data: string } {
  let flags = 0;
  const data: string[] = [];
  for (const word of text === '' ? [] : text.split(',')) {
    const value = Object.hasOwn(WORDS, word) ? WORDS[word]! : undefined;
    if (value === undefined) data.push(word);
    else flags = value < 0 ? flags & ~-value : flags | value;
  }
  return { flags, data: data.join(',') };
}

/**
 * Mounts as `mount -t TYPE -o OPTIONS DEVICE TARGET` does, without helpers. Throws an error with dockerd's words, which
 * are those of Go's mount.
 */
export async function mountByWords({ type, device, options }: MountRequest, target: string): Promise<void> {
  const { flags, data } = readMountWords(options);
  try {
    if (QUICK.has(type) || (flags & MS.bind) !== 0) mountQuickly({ type, device, data, flags }, target);
    else await mountAside({ type, device, options }, target);
  } catch (error) {
    const shownFlags = flags === 0 ? '' : `, flags: 0x${flags.toString(16)}`;
    const shownData = data === '' ? '' : `, data: ${data}`;
    // As Go says it.
    const reason = error instanceof SystemError ? getSystemErrorMessage(-error.errno) : (error as Error).message;
    throw new Error(`mount ${device}:${target}${shownFlags}${shownData}: ${reason}`, { cause: error });
  }
}

function mountQuickly(
  { type, device, data, flags }: { type: string; device: string; data: string; flags: number },
  target: string,
): void {
  const call = (source: string, kind: string, bits: number, text: string): void => {
    check(mount(source, target, kind, BigInt(bits), text === '' ? null : text), 'mount', [source, target, kind]);
  };
  const first = flags & ~PROPAGATION;
  call(device, type, first, data);
  if ((flags & PROPAGATION) !== 0) call('none', '', flags & (PROPAGATION | MS.recursive), '');
  // The first call of a bind ignores that it is read-only.
  if ((first & (MS.bind | MS.ro)) === (MS.bind | MS.ro)) call('none', '', first | MS.remount, '');
}

/** In a process of its own, which can be killed even if the server does not answer. */
async function mountAside({ type, device, options }: MountRequest, target: string): Promise<void> {
  const words = [
    '--internal-only',
    '--no-mtab',
    '-t',
    type,
    ...(options === '' ? [] : ['-o', options]),
    device,
    target,
  ];
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  execFile('mount', words, { timeout: TIMEOUT_MS, killSignal: 'SIGKILL' }, (error, _stdout, stderr) => {
    if (error === null) resolve();
    else if (error.killed === true) reject(new Error(`no answer within ${TIMEOUT_MS / 1000} seconds`));
    else reject(new Error(isKnown(type) ? (ownReason(stderr, target) ?? error.message) : 'no such device'));
  });
  await promise;
}

/** Whether the kernel has this file system, after the attempt to load its module. */
function isKnown(type: string): boolean {
  const lines = readFileSync('/proc/filesystems', 'utf8').split('\n');
  return lines.some((line) => line.split('\t')[1] === type);
}

/** The last words of `mount: /target: unknown filesystem type 'nfs'.` */
function ownReason(stderr: string, target: string): string | undefined {
  const [line = ''] = stderr.split('\n');
  const said = line.replace(`mount: ${target}: `, '').replace(/\.$/, '');
  return said === '' ? undefined : said;
}
