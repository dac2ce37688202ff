import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';

/** Counts of requests: unanswered ones by reason, the others by their page. */
export type TrafficCounts = Readonly<{
  ok: number;
  failed: number;
  reasons: Readonly<Record<string, number>>;
  pages: Readonly<Record<string, number>>;
}>;

/** HTTP requests from a network namespace, some at once, until they are to end. */
export class Traffic implements AsyncDisposable {
  readonly #client: ChildProcess;
  readonly #counts: Promise<string>;

  /** `netns`: path of the namespace. A name in `urls` is resolved for each request, by the name server of containers. */
  constructor(netns: string, urls: readonly string[], atOnce = 4) {
    const command = [process.execPath, join(import.meta.dirname, 'traffic-client.ts'), String(atOnce), ...urls];
    this.#client = spawn('nsenter', [`--net=${netns}`, ...command], { stdio: ['pipe', 'pipe', 'inherit'] });
    this.#counts = text(this.#client.stdout!);
  }

  /** Lets the requests under way end. */
  async end(): Promise<TrafficCounts> {
    this.#client.stdin!.end();
    return JSON.parse(await this.#counts) as TrafficCounts;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#client.exitCode !== null || this.#client.signalCode !== null) return;
    const ended = once(this.#client, 'exit');
    this.#client.kill();
    await ended;
  }
}
