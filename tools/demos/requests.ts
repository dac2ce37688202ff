import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

type Counts = { ok: number; failed: number; pages: ReadonlyMap<string, number>; reasons: ReadonlySet<string> };

/** Requests from one machine, without a pause, counted since the last look. */
export class Requests implements AsyncDisposable {
  readonly #client: ChildProcess;
  #lines: string[] = [];

  /** `netns`: the machine's network namespace. */
  constructor(netns: string, urls: readonly string[]) {
    const command = [process.execPath, join(import.meta.dirname, 'client.ts'), ...urls];
    this.#client = spawn('nsenter', [`--net=${netns}`, ...command], { stdio: ['pipe', 'pipe', 'inherit'] });
    createInterface(this.#client.stdout!).on('line', (line) => this.#lines.push(line));
  }

  /** Returns the counts since the last call. */
  take(): Counts {
    const pages = new Map<string, number>();
    const reasons = new Set<string>();
    let failed = 0;
    for (const line of this.#lines) {
      const [kind, rest] = [line.slice(0, line.indexOf(' ')), line.slice(line.indexOf(' ') + 1)];
      if (kind === 'ok') pages.set(rest, (pages.get(rest) ?? 0) + 1);
      else {
        failed++;
        reasons.add(rest);
      }
    }
    const ok = this.#lines.length - failed;
    this.#lines = [];
    return { ok, failed, pages, reasons };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const ended = once(this.#client, 'exit');
    this.#client.stdin!.end();
    await ended;
  }
}

/** `300 requests, all answered`, or how many were not and why. */
export function summary({ ok, failed, reasons }: Counts): string {
  const all = ok + failed;
  return failed === 0
    ? `${all} requests, all answered`
    : `${all} requests, ${ok} answered, ${failed} not (${[...reasons].join(', ')})`;
}
