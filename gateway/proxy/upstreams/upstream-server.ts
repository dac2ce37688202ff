import { Pool } from 'undici';

import type { UpstreamAddress } from '../../config/upstream-address.ts';

/** A server that took no connection is left alone for this long, while there are others. */
const PAUSE_MS = 1000;
const CHECK_INTERVAL_MS = 2000;
const CHECK_TIMEOUT_MS = 2000;

/** One of the servers behind, with its connections. */
export class UpstreamServer implements AsyncDisposable {
  readonly address: UpstreamAddress;
  readonly pool: Pool;
  underWay = 0;
  /** False: its last health check has failed. */
  isHealthy = true;
  #failedAtMs = -Infinity;
  readonly #health: string | undefined;
  readonly #checking: Pool | undefined;
  readonly #checks: NodeJS.Timeout | undefined;

  /** `health`: the path that has to answer below 400, asked again and again. */
  constructor(address: UpstreamAddress, options: Pool.Options, health: string | undefined) {
    const { origin, socketPath } = address;
    const own = { ...options, ...(socketPath === undefined ? {} : { socketPath }) };
    this.address = address;
    this.pool = new Pool(origin, own);
    this.#health = health;
    if (health === undefined) return;
    this.#checking = new Pool(origin, { ...own, connections: 1 }); // a busy server may have no connection left
    this.#checks = setInterval(() => void this.#check(), CHECK_INTERVAL_MS).unref();
    void this.#check();
  }

  /** Does it take requests, as far as is known? */
  isUp(): boolean {
    return this.isHealthy && performance.now() - this.#failedAtMs >= PAUSE_MS;
  }

  noteFailure(): void {
    this.#failedAtMs = performance.now();
  }

  /** Requests under way end first. */
  async close(): Promise<void> {
    clearInterval(this.#checks);
    await Promise.all([this.pool.close(), this.#checking?.destroy()]);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#checks);
    await Promise.all([this.pool.destroy(), this.#checking?.destroy()]);
  }

  async #check(): Promise<void> {
    try {
      const path = `${this.address.prefix}${this.#health}`;
      const signal = AbortSignal.timeout(CHECK_TIMEOUT_MS);
      const { statusCode, body } = await this.#checking!.request({ path, method: 'GET', signal });
      await body.dump();
      this.isHealthy = statusCode < 400;
    } catch {
      this.isHealthy = false;
    }
  }
}

/** The server with the fewest requests under way; undefined: health checks have failed everywhere, or all were `tried`. */
export function chooseServer(servers: readonly UpstreamServer[], tried: readonly UpstreamServer[] = []) {
  const left = servers.filter((server) => !tried.includes(server));
  const up = left.filter((server) => server.isUp());
  // Where none is known to be up, one that has just failed may be back.
  const candidates = up.length > 0 ? up : left.filter(({ isHealthy }) => isHealthy);
  const fewest = candidates.reduce((least, { underWay }) => Math.min(least, underWay), Infinity);
  const equal = candidates.filter(({ underWay }) => underWay === fewest);
  return equal[Math.floor(Math.random() * equal.length)];
}
