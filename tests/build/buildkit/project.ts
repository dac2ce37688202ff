import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

import { TarWriter, type TarEntry } from '@gantry/testing/archives/tar-writer.ts';
import { newerClients } from '@gantry/testing/clients/newer-clients.ts';

/** Undefined where they could not be fetched, which `./gantry test` says. */
export const clients = newerClients();

export type Said = Readonly<{ code: number; text: string }>;

/** A folder with the files of builds, and docker's command line with buildx for an engine. */
export class Project implements AsyncDisposable {
  readonly folder: string;
  readonly #socketPath: string;

  private constructor(folder: string, socketPath: string) {
    this.folder = folder;
    this.#socketPath = socketPath;
  }

  static async make(socketPath: string): Promise<Project> {
    const project = new Project(await mkdtemp(join(tmpdir(), 'buildkit-')), socketPath);
    const config = { auths: {}, cliPluginsExtraDirs: [clients!.plugins] };
    await project.write({ '.config/config.json': JSON.stringify(config) });
    return project;
  }

  /** Names may have folders. */
  async write(files: Readonly<Record<string, string>>): Promise<void> {
    for (const [name, content] of Object.entries(files)) {
      const path = join(this.folder, name);
      await mkdir(dirname(path), { recursive: true });
      await writeFile(path, content);
    }
  }

  async archive(name: string, entries: readonly TarEntry[]): Promise<void> {
    const tar = new TarWriter();
    for (const entry of entries) tar.add(entry);
    await writeFile(join(this.folder, name), tar.end());
  }

  /** Runs docker in the folder; its output and errors together. */
  async docker(
    words: readonly string[],
    input: string | Buffer = '',
    variables: Readonly<Record<string, string>> = {},
  ): Promise<Said> {
    const child = this.#spawn(words, variables);
    const pieces: Buffer[] = [];
    const keep = (piece: Buffer): void => void pieces.push(piece);
    child.stdout!.on('data', keep);
    child.stderr!.on('data', keep);
    child.stdin!.end(input);
    const [code] = (await once(child, 'close')) as [number];
    return { code, text: Buffer.concat(pieces).toString() };
  }

  /** Begins a build, and leaves when it has printed this. */
  async leave(name: string, printed: string): Promise<void> {
    const child = this.#spawn(['build', '--progress', 'plain', name]);
    const exited = once(child, 'exit');
    let text = '';
    for await (const piece of child.stderr!) if ((text += String(piece)).includes(printed)) break;
    child.kill('SIGKILL');
    await exited;
  }

  /** `docker build` of files in a folder of their own. */
  async build(name: string, files: Readonly<Record<string, string>>, ...flags: readonly string[]): Promise<Said> {
    await this.write(Object.fromEntries(Object.entries(files).map(([path, text]) => [`${name}/${path}`, text])));
    return await this.docker(['build', '--progress', 'plain', '-t', name, ...flags, name]);
  }

  #spawn(words: readonly string[], more: Readonly<Record<string, string>> = {}): ChildProcess {
    const env = { ...process.env, DOCKER_CONFIG: join(this.folder, '.config'), ...more };
    return spawn(clients!.docker, ['-H', `unix://${this.#socketPath}`, ...words], { cwd: this.folder, env });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.folder, { recursive: true });
  }
}
