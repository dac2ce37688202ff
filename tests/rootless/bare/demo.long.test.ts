import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { copyFile, mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';

const execute = promisify(execFile);
const root = dirname(dirname(dirname(import.meta.dirname)));
/** Folder of the base; git ignores it. */
const KEPT = join(root, 'build', 'bare-debian');
const MIRROR = 'http://deb.debian.org/debian';
/** Registries behind a proxy of this machine may have its authority. */
const AUTHORITIES = '/etc/ssl/certs/ca-certificates.crt';
/** Their place in the other system, whose own file changes with its packages. */
const AUTHORITIES_INSIDE = '/opt/authorities.crt';
const MISSING = /only root can install (?:them:(.*)|it)/;
const MAX_INSTALLATIONS = 4;

/** Enters a root file system: a chroot may have no user namespaces. /dev/net/tun is open to users, as udev makes it. */
const ENTER = `
mount --rbind "$1" "$1" && cd "$1"
mount -t proc proc proc && mount --rbind /sys sys && mount --rbind /dev dev && mount -t tmpfs -o mode=1777 tmp tmp
rm -f run/net-tun && mknod -m 666 run/net-tun c 10 200 && mount --bind run/net-tun dev/net/tun
mkdir -p old && pivot_root . old && umount -l /old && cd / && shift && exec "$@"`;

/** `./gantry test tests/rootless/bare`: minutes, and half a gigabyte from Debian's mirror and npm. */
test('an ordinary user of a bare Debian 12 runs the demo', async () => {
  const base = await debianBase();
  await using stack = new AsyncDisposableStack();
  const folder = stack.adopt(
    await mkdtemp('/tmp/gantry-bare-'),
    async (path) => await rm(path, { recursive: true, force: true }),
  );
  await execute('tar', ['-C', folder, '--numeric-owner', '-xpf', base]);
  await execute('chmod', ['755', folder]);
  const inside = async (...command: string[]): Promise<string> => {
    const within = ['--mount', '--pid', '--fork', '--kill-child', '--propagation', 'private'];
    const words = [...within, 'sh', '-ec', ENTER, 'sh', folder, 'env', '-i', 'PATH=/usr/sbin:/usr/bin:/sbin:/bin'];
    const { stdout, stderr } = await execute('unshare', [...words, ...command], { maxBuffer: 2 ** 26 });
    return stdout + stderr;
  };
  const asUser = async (command: string): Promise<string> =>
    await inside(
      ...['setpriv', '--reuid=ada', '--regid=ada', '--init-groups', 'env', 'HOME=/home/ada', 'USER=ada'],
      ...[`NODE_EXTRA_CA_CERTS=${AUTHORITIES_INSIDE}`, `npm_config_cafile=${AUTHORITIES_INSIDE}`, 'sh', '-c'],
      `cd ~/gantry && ${command}`,
    );
  await inside('useradd', '--create-home', 'ada');
  await copyFile(AUTHORITIES, join(folder, AUTHORITIES_INSIDE));
  await copyFile('/etc/resolv.conf', join(folder, 'etc/resolv.conf'));
  await execute('sh', [
    '-c',
    'mkdir "$1" && cd "$0" && git ls-files -z | tar --null -T - -c | tar -x -C "$1"',
    ...[root, join(folder, 'home/ada/gantry')],
  ]);
  await inside('chown', '-R', 'ada:ada', '/home/ada/gantry');

  let shown = '';
  for (let installations = 0; installations <= MAX_INSTALLATIONS; installations += 1) {
    shown = await asUser('./gantry demo').catch(
      (error: { stdout: string; stderr: string }) => error.stdout + error.stderr,
    );
    const missing = MISSING.exec(shown);
    if (missing === null) break;
    const packages = missing[1]?.trim().split(' ') ?? ['nodejs', 'npm'];
    await inside('apt-get', '-qq', 'update');
    const apt = ['apt-get', '-y', '-qq', '--no-install-recommends', 'install', ...packages];
    await inside('env', 'DEBIAN_FRONTEND=noninteractive', ...apt);
  }

  for (const each of [/exit code 3/, /Nice to meet you, Ada/, /answers: served from a container/, /20 of 20 ended/])
    assert.match(shown, each);
  const processes = await execute('ps', ['-A', '-o', 'args=']);
  assert.ok(!processes.stdout.includes('/home/ada/gantry/'), processes.stdout);
});

/** Debian 12 without anything else; made by debootstrap once. */
async function debianBase(): Promise<string> {
  const archive = join(KEPT, 'base.tar');
  if (existsSync(archive)) return archive;
  await mkdir(KEPT, { recursive: true });
  await using stack = new AsyncDisposableStack();
  const folder = stack.adopt(await mkdtemp(join(KEPT, 'root-')), async (path) => await rm(path, { recursive: true }));
  const [made, whole] = [join(folder, 'root'), join(folder, 'base.tar')];
  await execute('debootstrap', ['--variant=minbase', 'bookworm', made, MIRROR]);
  await execute('tar', ['-C', made, '--numeric-owner', '-cf', whole, '--exclude=./dev/*', '.']);
  await rename(whole, archive);
  return archive;
}
