import { execFile, execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { chown, readFile } from 'node:fs/promises';
import { promisify } from 'node:util';

import { eventually } from '../eventually.ts';

const execute = promisify(execFile);
/** Names the process of the test that made the user. */
const NAME = /^gantry-(\d+)-\d+$/;
const PATH = '/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin';

let made = 0;

type Output = Readonly<{ code: number; stdout: string; stderr: string }>;

/** An ordinary user of this machine, with subordinate ids. Disposing removes it, once its processes have ended. */
export class LocalUser implements AsyncDisposable {
  readonly name: string;
  readonly uid: number;
  readonly gid: number;

  private constructor(name: string, uid: number, gid: number) {
    this.name = name;
    this.uid = uid;
    this.gid = gid;
  }

  static async make(): Promise<LocalUser> {
    if (made === 0) await removeStaleUsers();
    made += 1;
    const name = `gantry-${process.pid}-${made}`;
    // Another test may hold the lock of the files of users.
    await eventually('a user is made', async () => {
      await execute('useradd', ['--no-create-home', '--shell', '/bin/sh', name]);
      return true;
    });
    const idOf = (kind: string): number => Number(execFileSync('id', [kind, name], { encoding: 'utf8' }));
    return new LocalUser(name, idOf('-u'), idOf('-g'));
  }

  /** The ids that /etc/subuid or /etc/subgid has for it. */
  async subordinateIds(path: '/etc/subuid' | '/etc/subgid'): Promise<{ first: number; count: number }> {
    const line = (await readFile(path, 'utf8')).split('\n').find((each) => each.startsWith(`${this.name}:`));
    const [, first, count] = (line ?? '').split(':').map(Number);
    return { first: first ?? 0, count: count ?? 0 };
  }

  /** The words before a command that make it this user's, in an environment of its own. */
  words(home: string, variables: Readonly<Record<string, string>> = {}): string[] {
    const environment = Object.entries({ HOME: home, USER: this.name, PATH, ...variables });
    return [
      ...['setpriv', `--reuid=${this.uid}`, `--regid=${this.gid}`, '--init-groups', '--inh-caps=-all', '--'],
      ...['env', '-i', ...environment.map(([key, value]) => `${key}=${value}`)],
    ];
  }

  /** Runs a command as this user, in another's network namespace if given. */
  async run(
    command: readonly string[],
    { netns, home = '/' }: { netns?: string; home?: string } = {},
  ): Promise<Output> {
    const words = [...(netns === undefined ? [] : ['nsenter', `--net=${netns}`]), ...this.words(home), ...command];
    try {
      const { stdout, stderr } = await execute(words[0]!, words.slice(1), { cwd: '/' });
      return { code: 0, stdout, stderr };
    } catch (error) {
      const { code, stdout, stderr } = error as { code: unknown; stdout: string; stderr: string };
      if (typeof code !== 'number') throw error;
      return { code, stdout, stderr };
    }
  }

  async own(path: string): Promise<void> {
    await chown(path, this.uid, this.gid);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await eventually(`the processes of ${this.name} have ended`, async () => {
      const { stdout } = await execute('ps', ['-A', '-o', 'uid=,stat=']);
      return !stdout.split('\n').some((line) => new RegExp(`^\\s*${this.uid}\\s+[^Z]`).test(line));
    });
    await eventually('the user is removed', async () => {
      await execute('userdel', [this.name]);
      return true;
    });
  }
}

/** Removes users whose test has died. Those that still have processes stay until these have ended. */
export async function removeStaleUsers(): Promise<void> {
  for (const line of readFileSync('/etc/passwd', 'utf8').split('\n')) {
    const [name = ''] = line.split(':');
    const maker = NAME.exec(name)?.[1];
    if (maker === undefined || existsSync(`/proc/${maker}`)) continue;
    await execute('userdel', [name]).catch(() => undefined); // another test may remove it at this moment
  }
}
