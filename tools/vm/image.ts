import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';

import { CACHE, hashOf, here, makeDisk, replace, repository, run } from './parts.ts';

const MIRROR = 'http://deb.debian.org/debian';

/** The names that `./gantry test vm` takes. */
export const SUITES = ['bookworm', 'trixie'] as const;
export type Suite = (typeof SUITES)[number];
/** The Debian with dockerd 20.10, which is the judge in all machines. */
const JUDGE_SUITE: Suite = 'bookworm';

/** Files on this machine that a machine boots from. */
export type Image = Readonly<{ disk: string; kernel: string; initramfs: string }>;

/** Masked units: nothing waits for a network, and the console belongs to the tests. */
const MASKED = [
  ...[
    'serial-getty@ttyS0.service',
    'getty@tty1.service',
    'systemd-timesyncd.service',
    'systemd-networkd-wait-online.service',
  ],
  ...['docker.service', 'docker.socket', 'containerd.service', 'etcd.service'],
  ...['apt-daily.timer', 'apt-daily-upgrade.timer', 'dpkg-db-backup.timer', 'e2scrub_all.timer', 'fstrim.timer'],
];

/** A root of Debian with systemd and its cloud kernel; from the cache, if its inputs are unchanged. */
export async function machineImage(suite: Suite, work: string): Promise<Image> {
  const packages = ['tools/packages/run.txt', 'tools/vm/packages.txt'].flatMap((list) => packagesIn(list, suite));
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
  if (suite !== JUDGE_SUITE) await unpackJudge(root);
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

/** After the kernel: apt forgets its other lists. */
async function unpackJudge(root: string): Promise<void> {
  const script = `cd /tmp
    echo 'deb ${MIRROR} ${JUDGE_SUITE} main' >list
    apt='apt-get -qq -o Dir::Etc::SourceList=/tmp/list -o Dir::Etc::SourceParts=-'
    $apt update
    $apt download docker.io
    dpkg-deb --fsys-tarfile docker.io_*.deb |
      tar -x -C / --keep-directory-symlink ./usr/sbin/dockerd ./usr/sbin/docker-proxy ./usr/bin/docker-init
    rm list docker.io_*.deb
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

/** A line of a list is a package, and the one suite that it is for, if it is not for all. */
function packagesIn(list: string, suite: Suite): string[] {
  const lines = readFileSync(join(repository, list), 'utf8').split('\n');
  return lines.flatMap((line) => {
    const [name, only = suite] = line.replace(/#.*/, '').trim().split(/\s+/);
    return name === '' || name === undefined || only !== suite ? [] : [name];
  });
}
