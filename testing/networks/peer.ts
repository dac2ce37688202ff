import { Worker } from 'node:worker_threads';

export type PeerTask = { id: number } & (
  | { kind: 'serve tcp' | 'serve udp'; port: number; name: string; address?: string }
  | { kind: 'ask tcp'; host: string; port: number; timeoutMs: number }
  | { kind: 'ask udp'; host: string; port: number; timeoutMs: number; from?: number }
);
export type PeerAnswer = { id: number; text?: string; code?: string };

type WithoutId<T> = T extends unknown ? Omit<T, 'id'> : never;

const TIMEOUT_MS = 60_000;

/** A program in a network namespace that serves and asks others; answers come as text or as error codes. */
export class Peer implements AsyncDisposable {
  readonly #worker: Worker;
  readonly #waiting = new Map<number, (answer: string) => void>();
  #next = 0;

  constructor(netns: number) {
    this.#worker = new Worker(new URL('./peer-worker.ts', import.meta.url), { workerData: { netns } });
    this.#worker.on('message', ({ id, text, code }: PeerAnswer) => {
      this.#waiting.get(id)?.(text ?? code ?? '');
      this.#waiting.delete(id);
    });
  }

  async serveTcp(port: number, name: string): Promise<void> {
    await this.#ask({ kind: 'serve tcp', port, name });
  }

  /** `address` is one of IPv4 by default. */
  async serveUdp(port: number, name: string, address?: string): Promise<void> {
    await this.#ask({ kind: 'serve udp', port, name, ...(address !== undefined && { address }) });
  }

  async tcp(host: string, port: number, timeoutMs = TIMEOUT_MS): Promise<string> {
    return await this.#ask({ kind: 'ask tcp', host, port, timeoutMs });
  }

  /** `from` is the source port, to repeat the same flow. */
  async udp(host: string, port: number, options: { timeoutMs?: number; from?: number } = {}): Promise<string> {
    return await this.#ask({ kind: 'ask udp', host, port, timeoutMs: TIMEOUT_MS, ...options });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#worker.terminate();
  }

  async #ask(task: WithoutId<PeerTask>): Promise<string> {
    const id = this.#next++;
    const { promise, resolve } = Promise.withResolvers<string>();
    this.#waiting.set(id, resolve);
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker has none
    this.#worker.postMessage({ ...task, id });
    return await promise;
  }
}
