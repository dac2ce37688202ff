import { startFailure, type StartFailed } from './start-failure.ts';

/** The file with the process for the runtime, which the shim passes on. */
export const PROBE_FILE = 'probe.json';
const FILES = { log: 'probe.log', process: PROBE_FILE };

/** How a health check ended. */
export type ProbeEnd = Readonly<{ exitCode: number; endedAt: Temporal.Instant; output: string }>;

/** A check that the shim runs. The shim may still run a check of an earlier daemon, so each has a number. */
export class Probe {
  readonly number = Math.floor(Math.random() * 2 ** 31);
  readonly ended = Promise.withResolvers<ProbeEnd>();
  readonly #directory: string;
  readonly #late: () => void;

  /** `late` is called if the check takes longer than its timeout; the check still ends by itself. */
  constructor(directory: string, late: () => void) {
    this.#directory = directory;
    this.#late = late;
  }

  /** `probe-late N`, `probed N failed REASON NANOSECONDS CUT OUTPUT`, `probed N exited CODE NANOSECONDS CUT OUTPUT`. */
  hear(line: string): void {
    const [word, number, how, what = '', nanoseconds = '', cut, output = ''] = line.split(' ');
    if (Number(number) !== this.number) return;
    if (word === 'probe-late') this.#late();
    else if (how === 'failed') this.ended.reject(this.#failure(what));
    else {
      const text = Buffer.from(output, 'base64').toString();
      this.ended.resolve({
        exitCode: Number(what),
        endedAt: new Temporal.Instant(BigInt(nanoseconds)),
        output: cut === '1' ? `${text}...` : text,
      });
    }
  }

  #failure(what: string): StartFailed {
    return startFailure(this.#directory, 'exec', `the runtime ended (${what})`, FILES);
  }
}
