import { execFile, execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, existsSync, globSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { promisify } from 'node:util';

const execute = promisify(execFile);
const here = import.meta.dirname;
const repository = dirname(dirname(here));

/** Ignored by git: a machine's parts are made once. */
export const CACHE = join(repository, 'build/vm');

const MIRROR = 'http://deb.debian.org/debian';

/** The names that `./gantry test vm` takes. */
export const SUITES = ['bookworm', 'trixie'] as const;
export type Suite = (typeof SUITES)[number];

/** Files on this machine that a machine boots from. */
export type Image = Readonly<{ disk: string; kernel: string; initramfs: string }>;

/** What the machine's units are not to do: nothing waits for a network, and the console belongs to the tests. */
const MASKED = [
  ...[
    'serial-getty@ttyS0.service',
    'getty@tty1.service',
    'systemd-timesyncd.service',
    'systemd-networkd-wait-online.service',
  ],
  ...['docker.service', 'docker.socket', 'containerd.service'],
  ...['apt-daily.timer', 'apt-daily-upgrade.timer', 'dpkg-db-backup.timer', 'e2scrub_all.timer', 'fstrim.timer'],
];

/** A root of Debian with systemd and its cloud kernel; from the cache, where nothing that it is made of has changed. */
export async function machineImage(suite: Suite, work: string): Promise<Image> {
  const packages = ['tools/packages/run.txt', 'tools/vm/packages.txt'].flatMap(packagesIn);
  const folder = join(CACHE, `${suite}-${hashOf(packages.join(), 'image.ts', 'init.sh', 'gantry-vm.service')}`);
  if (!existsSync(folder)) await buildImage({ suite, packages, folder }, work);
  return { disk: join(folder, 'disk'), kernel: join(folder, 'kernel'), initramfs: join(folder, 'initramfs') };
}

type Recipe = Readonly<{ suite: Suite; packages: readonly string[]; folder: string }>;

async function buildImage({ suite, packages, folder }: Recipe, work: string): Promise<void> {
  console.log(`building the machine of ${suite}, once: some minutes`);
  const root = join(work, 'root');
  await debootstrap(suite, packages, root);
  await unpackKernel(root);
  prepareRoot(root);
  mkdirSync(join(work, 'image'));
  cpSync(globSync(join(root, 'boot/vmlinuz-*'))[0]!, join(work, 'image/kernel'));
  makeInitramfs(root, work);
  await makeDisk(root, join(work, 'image/disk'), '4G');
  rmSync(root, { recursive: true });
  replace(`${suite}-*`, join(work, 'image'), folder);
}

/** In namespaces of its own: when it is killed, its processes and mounts go with it. */
async function debootstrap(suite: Suite, packages: readonly string[], root: string): Promise<void> {
  const words = ['--mount', '--pid', '--fork', '--kill-child', 'debootstrap', '--variant=minbase'];
  await run('unshare', [...words, `--include=${packages.join()}`, suite, root, MIRROR]);
}

/** Not installed: that would make an initramfs of its own, with drivers for everything. */
async function unpackKernel(root: string): Promise<void> {
  const script = `cd /tmp
    name=$(apt-cache depends linux-image-cloud-amd64 | sed -n 's/^ *Depends: \\(linux-image-.*\\)/\\1/p')
    apt-get -qq download "$name"
    dpkg-deb --fsys-tarfile "$name"_*.deb | tar -x -C / --keep-directory-symlink
    rm "$name"_*.deb
    depmod "\${name#linux-image-}"
    apt-get clean`;
  await run('chroot', [root, 'sh', '-euc', script]);
}

function prepareRoot(root: string): void {
  const unit = 'etc/systemd/system';
  cpSync(join(here, 'gantry-vm.service'), join(root, unit, 'gantry-vm.service'));
  execFileSync('systemctl', [`--root=${root}`, 'enable', '--quiet', 'gantry-vm.service']);
  execFileSync('systemctl', [`--root=${root}`, 'mask', '--quiet', ...MASKED]);
  writeFileSync(join(root, 'etc/hostname'), 'gantry-vm\n');
  writeFileSync(join(root, 'etc/hosts'), '127.0.0.1 localhost gantry-vm\n');
  rmSync(join(root, 'etc/resolv.conf'), { force: true });
  for (const list of globSync(join(root, 'var/lib/apt/lists/*'))) rmSync(list, { recursive: true });
}

/** The drivers of disks and file system are modules: a small root that loads them, made of busybox. */
function makeInitramfs(root: string, work: string): void {
  const folder = join(work, 'initramfs');
  for (const name of ['bin', 'dev', 'proc', 'root', 'modules']) mkdirSync(join(folder, name), { recursive: true });
  cpSync('/bin/busybox', join(folder, 'bin/busybox'));
  for (const name of ['sh', 'mount', 'umount', 'cat', 'insmod', 'sleep', 'switch_root', 'poweroff']) {
    execFileSync('ln', ['-s', 'busybox', join(folder, 'bin', name)]);
  }
  cpSync(join(here, 'init.sh'), join(folder, 'init'));
  modulesFor(root, ['virtio_pci', 'virtio_blk', 'crc32c_generic', 'ext4']).forEach((file, index) => {
    const text = file.endsWith('.xz') ? execFileSync('xz', ['-dc', file], { maxBuffer: 1e8 }) : readFileSync(file);
    const name = `${String(index).padStart(2, '0')}-${basename(file, '.xz')}`;
    writeFileSync(join(folder, 'modules', name), text);
  });
  const archive = `find . | busybox cpio -o -H newc 2>/dev/null | gzip -1 >"$1"`;
  execFileSync('sh', ['-euc', archive, 'sh', join(work, 'image/initramfs')], { cwd: folder });
}

/** The files of modules and of what they need, in the order in which they are loaded. */
function modulesFor(root: string, names: readonly string[]): string[] {
  const version = basename(globSync(join(root, 'lib/modules/*'))[0]!);
  const lines = names.flatMap((name) => {
    const found = execFileSync('modprobe', ['-d', root, '-S', version, '--show-depends', name], { encoding: 'utf8' });
    return found.split('\n');
  });
  return [...new Set(lines.flatMap((line) => /^insmod (\S+)/.exec(line)?.[1] ?? []))];
}

/** Node and the npm packages, which change less often than the rest of the checkout. */
export async function modulesDisk(work: string): Promise<string> {
  const node = dirname(dirname(process.execPath));
  const disk = join(CACHE, `modules-${hashOf(node, '../../package-lock.json')}`);
  if (existsSync(disk)) return disk;
  const root = join(work, 'modules');
  const inside = join(root, '.node/node_modules', basename(node), 'bin');
  mkdirSync(inside, { recursive: true });
  cpSync(process.execPath, join(inside, 'node'));
  await run('cp', ['-a', join(repository, 'node_modules'), root]);
  await makeDisk(root, join(work, 'modules-disk'), '1500M');
  replace('modules-*', join(work, 'modules-disk'), disk);
  return disk;
}

/** The checkout itself and the words of the job, as a disk that is an archive: made anew for every boot. */
export async function checkoutDisk(job: readonly string[], work: string): Promise<string> {
  const disk = join(work, 'checkout');
  writeFileSync(join(work, 'vm-job'), job.map((word) => `${word}\n`).join(''));
  const left = ['node_modules', '.node', '.git', 'build'].map((name) => `--exclude=./${name}`);
  const options = ['--create', `--file=${disk}`, '--owner=0', '--group=0', '--anchored', ...left];
  await run('tar', [...options, '-C', repository, '.']);
  await run('tar', [
    '--append',
    `--file=${disk}`,
    '-C',
    repository,
    './build/gantry-shim',
    './build/gantry-resolver',
    '-C',
    work,
    'vm-job',
  ]);
  return disk;
}

/** Puts what is ready into the cache, in the place of its older versions. */
function replace(older: string, ready: string, place: string): void {
  for (const old of globSync(join(CACHE, older))) rmSync(old, { recursive: true });
  renameSync(ready, place);
}

async function makeDisk(folder: string, disk: string, size: string): Promise<void> {
  await run('mke2fs', ['-q', '-t', 'ext4', '-O', '^has_journal', '-d', folder, disk, size]);
}

/** It ends with this process. */
async function run(command: string, args: readonly string[]): Promise<void> {
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  await execute('setpriv', ['--pdeathsig=KILL', command, ...args], { env, maxBuffer: 1e8 });
}

function packagesIn(list: string): string[] {
  const lines = readFileSync(join(repository, list), 'utf8').split('\n');
  return lines.map((line) => line.replace(/#.*/, '').trim()).filter((name) => name !== '');
}

/** Of a text and of files of this folder. */
function hashOf(text: string, ...files: string[]): string {
  const hash = createHash('sha256').update(text);
  for (const file of files) hash.update(readFileSync(join(here, file)));
  return hash.digest('hex').slice(0, 12);
}
