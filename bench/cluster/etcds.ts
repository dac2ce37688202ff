import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';

const FIRST_PEER_PORT = 23_800;

/** Members of etcd on this machine's loopback, with the engine's settings but for the certificates of peers. */
export class Etcds implements AsyncDisposable {
  readonly #directory: string;
  readonly #processes: ChildProcess[];

  constructor(directory: string, count: number) {
    this.#directory = directory;
    const urls = Array.from({ length: count }, (_, at) => `http://127.0.0.1:${FIRST_PEER_PORT + at}`);
    this.#processes = urls.map((url, at) => {
      const cwd = join(directory, `etcd${at}`);
      mkdirSync(cwd, { recursive: true, mode: 0o700 });
      const flags = [
        `--name=etcd${at}`,
        '--data-dir=data',
        '--listen-client-urls=unix://client:0',
        '--advertise-client-urls=unix://client:0',
        `--listen-peer-urls=${url}`,
        `--initial-advertise-peer-urls=${url}`,
        `--initial-cluster=${urls.map((peer, member) => `etcd${member}=${peer}`).join(',')}`,
        '--pre-vote',
        '--max-txn-ops=2000',
        `--quota-backend-bytes=${2 * 1024 ** 3}`,
        '--logger=zap',
        '--log-level=error',
      ];
      return spawn('etcd', flags, { cwd, stdio: 'ignore' });
    });
  }

  get socketPath(): string {
    return join(this.#directory, 'etcd0', 'client:0');
  }

  get pids(): number[] {
    return this.#processes.map(({ pid }) => pid!);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const child of this.#processes) {
      if (child.exitCode !== null) continue;
      const ended = once(child, 'exit');
      child.kill('SIGKILL');
      await ended;
    }
  }
}
