import type { Container } from '../../containers/store.ts';
import type { Clock } from '../../lib/clock.ts';
import type { LogOptions } from '../driver.ts';
import type { BatchLimits } from './buffer-reader.ts';
import type { Line } from './line.ts';

/** A container's lines on their way to one receiver. */
export type Sender = Disposable & {
  /** How many lines it wants at once. */
  readonly limits: BatchLimits;
  /** Its protocol says nothing of what has arrived: lines of the last moments are sent again after a connection broke. */
  readonly recalls: boolean;
  /** Batches are at least so far apart, because each costs the receiver something. Default: 20. */
  readonly pauseMs?: number;
  /**
   * Resolves when the receiver has the lines, as far as its protocol tells. A failure is tried again with all of them.
   *
   * With a number it has taken so many of them, and wants the others again with those that follow, or after `pauseMs`.
   * `isLast`: nothing follows, or nothing more has room. It takes all of them then.
   */
  send(lines: readonly Line[], isLast: boolean): Promise<void | number>;
  /** Everything was sent, and nothing comes for a while or ever. Rejects if the last lines may not have arrived. */
  end(): Promise<void>;
};

export type SenderContext = Readonly<{
  container: Container;
  options: LogOptions;
  clock: Clock;
  /** The connection broke while nothing was being sent. */
  broken: () => void;
  /** So many lines can never be sent, whatever the state of the receiver: they are counted as lost. */
  refused: (lines: number, reason: string) => void;
}>;
