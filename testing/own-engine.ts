import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { openSync, readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';

import { Api } from './api.ts';
import { endProcess } from './daemon-process.ts';
import { eventually } from './eventually.ts';

const root = dirname(import.meta.dirname);
const PROGRAM = join(root, 'build/gantry-rootless');
const DAEMON = process.env['GANTRY_DAEMON'] ?? join(root, 'engine/main.ts');

/** A daemon of the user that this process is of, in a temporary place; disposing ends it and removes all of it. */
export class OwnEngine extends Api implements AsyncDisposable {
  readonly #directory: string;
  readonly #process: ChildProcess;

  private constructor(directory: string, child: ChildProcess) {
    super(join(directory, 'gantry.sock'), '/v1.41');
    this.#directory = directory;
    this.#process = child;
  }

  static async start(): Promise<OwnEngine> {
    const directory = await mkdtemp('/tmp/gantry-demo-');
    const log = openSync(join(directory, 'log'), 'a');
    const flags = [`--host=unix://${directory}/gantry.sock`, `--data-root=${directory}/data`];
    const places = [`--exec-root=${directory}/exec`, `--pidfile=${directory}/pid`];
    const words = [join(directory, 'keeper'), process.execPath, DAEMON, ...flags, ...places];
    const child = spawn(PROGRAM, words, { stdio: ['ignore', log, log] });
    const engine = new OwnEngine(directory, child);
    await eventually('the daemon answers', async () => {
      if (child.exitCode !== null) return true;
      return (await engine.get('/_ping')).status === 200;
    });
    if (child.exitCode !== null)
      throw new Error(`the daemon has ended:\n${readFileSync(join(directory, 'log'), 'utf8')}`);
    return engine;
  }

  /** GET / of a port on this machine's loopback. */
  async fetchText(port: number): Promise<string> {
    const answer = await fetch(`http://127.0.0.1:${port}/`);
    return await answer.text();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const { body } = await this.get<{ Id: string }[]>('/containers/json?all=1');
    for (const { Id } of body) await this.delete(`/containers/${Id}?force=1&v=1`);
    this[Symbol.dispose]();
    await endProcess(this.#process);
    // Files of containers have other owners than this user: root of the namespaces removes them.
    const inside = spawn(PROGRAM, [join(this.#directory, 'keeper'), 'rm', '-rf', join(this.#directory, 'data')], {
      stdio: 'ignore',
    });
    await once(inside, 'exit');
    await rm(this.#directory, { recursive: true, force: true });
  }
}
