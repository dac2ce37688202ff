import type { Clock } from '../../lib/clock.ts';
import { progressLine, type Report } from '../progress/progress.ts';
import type { DownloadEvent } from './layers/layer-downloads.ts';

/** As often as eyes can follow. */
const INTERVAL_MS = 100;

/** The lines about one layer of a pull or a push, under its id. */
export class LayerLines {
  readonly #report: Report;
  readonly #clock: Clock;
  readonly #id: string;
  total: number;
  #toldAt = 0;

  constructor(report: Report, clock: Clock, id: string, total: number) {
    this.#report = report;
    this.#clock = clock;
    this.#id = id;
    this.total = total;
  }

  say(status: string): void {
    this.#report({ status, progressDetail: {}, id: this.#id });
  }

  /** Many calls, few lines; the last byte always has one. */
  bytes(status: string, current: number): void {
    const now = this.#clock.now().epochMilliseconds;
    if (current < this.total && now - this.#toldAt < INTERVAL_MS) return;
    this.#toldAt = now;
    this.#report(progressLine(status, this.#id, current, this.total));
  }

  download(event: DownloadEvent): void {
    switch (event.kind) {
      case 'waiting':
        this.say('Waiting');
        break;
      case 'bytes':
        this.bytes('Downloading', event.bytes);
        break;
      case 'retry':
        this.say(retrying(event.seconds));
        break;
      case 'verifying':
        this.say('Verifying Checksum');
        break;
      case 'complete':
        this.say('Download complete');
        break;
    }
  }
}

export function retrying(seconds: number): string {
  return `Retrying in ${seconds} second${seconds === 1 ? '' : 's'}`;
}
