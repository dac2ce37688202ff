import type { Clock } from '../../lib/clock.ts';
import type { LogOptions } from '../driver.ts';
import type { LoggedContainer } from '../logged-container.ts';
import type { BatchLimits } from './buffer-reader.ts';
import type { Line } from './line.ts';

/** A container's lines on their way to one receiver. */
export type Sender = Disposable & {
  /** The number of lines that it wants at once. */
  readonly limits: BatchLimits;
  /** Its protocol does not acknowledge: the most recent lines are sent again after a broken connection. */
  readonly recalls: boolean;
  /** The least time between batches, because each costs the receiver something. Default: 20. */
  readonly pauseMs?: number;
  /**
   * Resolves when the receiver has the lines, as far as its protocol tells. A failure is tried again with all of them.
   *
   * With a number it has taken so many of them, and wants the others again with the next ones, or after `pauseMs`.
   * `isLast`: no line follows, or no more fit; it then takes all of them.
   */
  send(lines: readonly Line[], isLast: boolean): Promise<void | number>;
  /** Called after all lines, before a pause or the end. Rejects if the last lines may not have arrived. */
  end(): Promise<void>;
};

export type SenderContext = Readonly<{
  container: LoggedContainer;
  options: LogOptions;
  clock: Clock;
  /** The connection broke while nothing was being sent. */
  broken: () => void;
  /** Lines that can never be sent, whatever the state of the receiver: they are counted as lost. */
  refused: (lines: number, reason: string) => void;
}>;
