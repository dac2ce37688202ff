/**
 * The docker command line, compose and buildx of Debian 13, unpacked into `build/clients`, which git ignores: the tests drive the
 * newest version of the API by them. Nothing of the machine is changed.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

const FOLDER = join(dirname(dirname(import.meta.dirname)), 'build', 'clients');
const SUITE = 'trixie';
const PACKAGES = ['docker-cli', 'docker-compose', 'docker-buildx'];
const KEYRING = '/usr/share/keyrings/debian-archive-keyring.gpg';
const DEFAULT_MIRROR = 'http://deb.debian.org/debian';

export type NewerClients = Readonly<{ docker: string; plugins: string }>;

/** Undefined before `fetchNewerClients` has succeeded. */
export function newerClients(): NewerClients | undefined {
  const root = join(FOLDER, SUITE);
  const clients = { docker: join(root, 'usr/bin/docker'), plugins: join(root, 'usr/libexec/docker/cli-plugins') };
  return existsSync(join(clients.plugins, 'docker-buildx')) ? clients : undefined;
}

/** Fetches and unpacks the packages once. Throws where they cannot be had. */
export function fetchNewerClients(): void {
  if (newerClients() !== undefined) return;
  const work = join(FOLDER, 'work');
  rmSync(work, { recursive: true, force: true });
  for (const name of ['lists/partial', 'cache/archives/partial', 'root'])
    mkdirSync(join(work, name), { recursive: true });
  writeFileSync(join(work, 'sources'), `deb [signed-by=${KEYRING}] ${mirror()} ${SUITE} main\n`);
  const settings = [
    `Dir::Etc::SourceList=${work}/sources`,
    'Dir::Etc::SourceParts=-',
    `Dir::State::Lists=${work}/lists`,
    `Dir::Cache=${work}/cache`,
    'APT::Sandbox::User=root',
  ].flatMap((setting) => ['-o', setting]);
  const apt = (...words: string[]): Buffer =>
    execFileSync('apt-get', ['-qq', ...settings, ...words], { cwd: work, stdio: 'pipe', timeout: 300_000 });
  apt('update');
  apt('download', ...PACKAGES);
  for (const name of readdirSync(work).filter((each) => each.endsWith('.deb')))
    execFileSync('dpkg-deb', ['-x', name, 'root'], { cwd: work });
  rmSync(join(FOLDER, SUITE), { recursive: true, force: true }); // that of an older list of packages
  renameSync(join(work, 'root'), join(FOLDER, SUITE));
  rmSync(work, { recursive: true });
}

/** The mirror that the machine uses. */
function mirror(): string {
  const policy = execFileSync('apt-cache', ['policy'], { encoding: 'utf8' });
  return /https?:\/\/\S*\/debian(?=\s)/.exec(policy)?.[0] ?? DEFAULT_MIRROR;
}
