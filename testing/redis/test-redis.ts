import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { endingWithUs } from './test-process.ts';

/** A Redis of the test's own, on a socket in a temporary folder; gone when disposed. */
export class TestRedis implements AsyncDisposable {
  readonly folder: string;
  readonly url: string;
  readonly #options: readonly string[];
  #process: ChildProcess | undefined;

  private constructor(folder: string, options: readonly string[]) {
    this.folder = folder;
    this.#options = options;
    this.url = join(folder, 'redis.sock');
  }

  static async start(...options: string[]): Promise<TestRedis> {
    const redis = new TestRedis(await mkdtemp(join(tmpdir(), 'gantry-redis-')), options);
    await redis.start();
    return redis;
  }

  /** Not running yet: for `startWith`. */
  static prepare(): TestRedis {
    return new TestRedis(mkdtempSync(join(tmpdir(), 'gantry-redis-')), []);
  }

  async start(): Promise<void> {
    const args = ['--port', '0', '--unixsocket', this.url, '--save', '', '--appendonly', 'no', '--dir', this.folder];
    await this.startWith(...args, ...this.#options);
  }

  async startWith(...args: readonly string[]): Promise<void> {
    const child = spawn(...endingWithUs('redis-server', args), { stdio: ['ignore', 'pipe', 'inherit'] });
    this.#process = child;
    let said = '';
    for await (const chunk of child.stdout) {
      said += String(chunk);
      if (said.includes('eady to accept') || said.includes('Sentinel ID is')) break;
    }
  }

  /** Stops answering without closing anything, until `thaw`. */
  freeze(): void {
    this.#process?.kill('SIGSTOP');
  }

  thaw(): void {
    this.#process?.kill('SIGCONT');
  }

  async kill(): Promise<void> {
    const child = this.#process;
    this.#process = undefined;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, 'exit');
    child.kill('SIGKILL');
    await exited;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    await rm(this.folder, { recursive: true, force: true });
  }
}
