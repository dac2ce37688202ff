import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { eventually } from '../eventually.ts';
import type { ClusterHost } from './hosts.ts';

const CSR = { CN: 'external root', key: { algo: 'ecdsa', size: 256 }, names: [{ O: 'Example', C: 'DE' }] };

/** `cfssl serve` with its own root, on the machine of a host. */
export class Cfssl implements AsyncDisposable {
  readonly folder: string;
  readonly root: string;
  readonly #host: ClusterHost;
  #pid = 0;

  constructor(host: ClusterHost) {
    this.#host = host;
    const made = execFileSync('cfssl', ['gencert', '-initca', '-'], { input: JSON.stringify(CSR), stdio: 'pipe' });
    const { cert, key } = JSON.parse(made.toString()) as { cert: string; key: string };
    this.root = cert;
    this.folder = mkdtempSync(join(tmpdir(), 'gantry-cfssl-'));
    writeFileSync(join(this.folder, 'ca.pem'), cert);
    writeFileSync(join(this.folder, 'ca-key.pem'), key, { mode: 0o600 });
  }

  /** Lays its root where the first manager's `init` looks for one. */
  layRoot(): void {
    const folder = join(this.#host.engine.dataRoot, 'swarm/certificates');
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'swarm-root-ca.crt'), this.root);
  }

  get url(): string {
    return `http://${this.#host.ip}:8888/api/v1/cfssl/sign`;
  }

  /** `more`: words for its command line. */
  async start(more = ''): Promise<void> {
    const words = `cfssl serve -address ${this.#host.ip} -port 8888 -ca ca.pem -ca-key ca-key.pem ${more}`;
    const script = `cd ${this.folder}; ${words} </dev/null >log 2>&1 & echo $!`;
    this.#pid = Number(await this.#host.engine.onHost(['sh', '-c', script]));
    await eventually('cfssl listens', async () => {
      const listening = await this.#host.engine.onHost(['ss', '-Hltn', 'sport = :8888']);
      return listening.includes(':8888') ? true : undefined;
    });
  }

  async stop(): Promise<void> {
    if (this.#pid === 0) return;
    process.kill(this.#pid, 'SIGKILL');
    this.#pid = 0;
    await eventually('cfssl is gone', async () => {
      const listening = await this.#host.engine.onHost(['ss', '-Hltn', 'sport = :8888']);
      return listening.trim() === '' ? true : undefined;
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
    rmSync(this.folder, { recursive: true });
  }
}
