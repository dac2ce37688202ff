import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';

const execute = promisify(execFile);

/** Folder of fetched files; git ignores it. */
const KEPT = join(dirname(dirname(import.meta.dirname)), 'build', 'projects');
const MIRROR = 'http://deb.debian.org/debian';
const PACKAGES = ['nginx-light', 'gcc', 'libc6-dev', 'make', 'nodejs', 'python3', 'ca-certificates'];
/** Its hundreds of packages are more than debootstrap can put into an order. */
const LATER = ['npm'];

/** The root file system of Debian 12 with what the projects need, as an archive; made by debootstrap once, in minutes. */
export async function debianBase(): Promise<string> {
  const archive = join(KEPT, 'base.tar');
  if (existsSync(archive)) return archive;
  await mkdir(KEPT, { recursive: true });
  await using stack = new AsyncDisposableStack();
  const folder = stack.adopt(await mkdtemp(join(KEPT, 'root-')), async (path) => await rm(path, { recursive: true }));
  const root = join(folder, 'root');
  await execute('debootstrap', ['--variant=minbase', `--include=${PACKAGES.join(',')}`, 'bookworm', root, MIRROR]);
  await execute('chroot', [root, 'apt-get', 'install', '-y', '--no-install-recommends', ...LATER]);
  await execute('chroot', [root, 'apt-get', 'clean']);
  const whole = join(folder, 'base.tar');
  await execute('tar', ['-C', root, '-cf', whole, '--exclude=./proc/*', '--exclude=./sys/*', '.']);
  await rename(whole, archive);
  return archive;
}

/** A source of Debian 12, such as `t/tree/tree_2.1.0.orig.tar.gz`. Throws for one with another digest. */
export async function debianSource(path: string, sha256: string): Promise<Buffer> {
  const file = join(KEPT, path.split('/').at(-1)!);
  const content = existsSync(file) ? await readFile(file) : await fetched(`${MIRROR}/pool/main/${path}`);
  const digest = createHash('sha256').update(content).digest('hex');
  if (digest !== sha256) throw new Error(`${path} has the digest ${digest}`);
  await mkdir(KEPT, { recursive: true });
  await writeFile(file, content);
  return content;
}

async function fetched(url: string): Promise<Buffer> {
  const answer = await fetch(url);
  if (!answer.ok) throw new Error(`${url} answers ${answer.status}`);
  return Buffer.from(await answer.arrayBuffer());
}
