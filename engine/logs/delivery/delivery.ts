import { mkdirSync, watch } from 'node:fs';
import { basename, dirname } from 'node:path';

import type { Engine } from '../../engine.ts';
import type { Clock } from '../../lib/clock.ts';
import { hasCode } from '../../lib/errors.ts';
import { messageOf } from '../../lib/failure-message.ts';
import type { LogDriver } from '../driver.ts';
import type { LoggedContainer } from '../logged-container.ts';
import { checkpointPath } from './buffer-path.ts';
import { BufferReader, type BatchLimits } from './buffer-reader.ts';
import { readCheckpoint, writeCheckpoint } from './checkpoint.ts';
import type { Line, Position } from './line.ts';
import { Recent } from './recent.ts';
import type { Sender } from './sender.ts';

export type DeliveryNeeds = Pick<Engine, 'background' | 'clock'> &
  Readonly<{
    log: { warn(details: object, message: string): void };
  }>;

export type DeliveryStatus = Readonly<{
  /** Lines that will never be delivered: the buffer was full. */
  lost: number;
  /** The reason why the delivery is stuck at the moment; empty if it is not. */
  error: string;
}>;

/** Lines within this time are sent together, unless the receiver wants more of them at once. */
const PAUSE_MS = 20;
/** The shim cuts longer lines. */
const MAX_PIECE = 16 * 1024;

/**
 * The delivery of one container's lines: follows the buffer that the shim writes, sends in batches, in order, and keeps
 * a checkpoint. A receiver that does not answer is tried again until the container is removed.
 */
export class Delivery implements Disposable {
  readonly #needs: DeliveryNeeds;
  #container: LoggedContainer;
  readonly #driver: LogDriver;
  readonly #reader: BufferReader;
  readonly #recent = new Recent();
  readonly #settled = new Set<() => void>();
  #position: Position;
  /** Lost lines are counted up to here. */
  #counted: number;
  #lost: number;
  #error = '';
  #status: DeliveryStatus = { lost: 0, error: '' };
  #sender: Sender | undefined;
  #watcher: Disposable | undefined;
  #pauseMs = PAUSE_MS;
  #endPause = (): void => undefined;
  #isNew = false;
  #isBroken = false;
  #isBusy = false;
  #isClosed = false;

  constructor(needs: DeliveryNeeds, container: LoggedContainer, driver: LogDriver) {
    this.#needs = needs;
    this.#container = container;
    this.#driver = driver;
    const { position, lost } = readCheckpoint(checkpointPath(container.logPath));
    this.#position = position;
    this.#counted = position.seq;
    this.#lost = lost;
    this.#reader = new BufferReader(container.logPath, container.id, position);
  }

  get status(): DeliveryStatus {
    const { lost, error } = this.#status;
    if (lost !== this.#lost || error !== this.#error) this.#status = { lost: this.#lost, error: this.#error };
    return this.#status;
  }

  /** A run writes new lines from now on; the container may have another name than in the last one. */
  follow(container: LoggedContainer): void {
    this.#container = container;
    const { logPath } = container;
    this.#watcher ??= watchFile(logPath, this.#needs.clock, () => this.wake());
    this.wake();
  }

  /** The run has ended; the rest is still delivered. */
  runEnded(): void {
    this.#watcher?.[Symbol.dispose]();
    this.#watcher = undefined;
    this.#endPause();
    this.wake();
  }

  /** Resolves when everything is delivered; only after the end of the run. */
  async settled(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#settled.add(resolve);
    this.wake();
    await promise;
  }

  /** To be called when there may be new lines. */
  wake(): void {
    this.#isNew = true;
    if (this.#isBusy || this.#isClosed) return;
    this.#isBusy = true;
    this.#needs.background.run('follow the log of a container', this.#about(), async () => await this.#work());
  }

  [Symbol.dispose](): void {
    this.#isClosed = true;
    this.#endPause();
    this.#watcher?.[Symbol.dispose]();
    this.#reader.close();
    this.#dropSender();
    for (const settle of this.#settled) settle();
  }

  async #work(): Promise<void> {
    while (this.#isNew && !this.#isClosed) {
      const { background } = this.#needs;
      await background.untilDone('deliver the log of a container', this.#about(), async () => await this.#deliver())
        .done;
      await this.#pause();
    }
    this.#isBusy = false;
  }

  /** Collects lines that are written meanwhile. The end of a run does not wait. */
  async #pause(): Promise<void> {
    if (this.#watcher === undefined && !this.#isNew) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    using _timer = this.#needs.clock.after(this.#pauseMs, resolve);
    this.#endPause = resolve;
    await promise;
  }

  /** Sends all lines. Throws when a sending fails and nothing was sent before: it is then retried later. */
  async #deliver(): Promise<void> {
    this.#isNew = false;
    if (this.#isBroken) this.#startOver();
    const before = this.#position;
    try {
      while (!this.#isClosed && (await this.#sendBatch()));
      this.#reader.close();
      if (this.#watcher === undefined && !this.#isNew) await this.#finish();
    } catch (error) {
      if (this.#isClosed) return;
      const hasSent = this.#position !== before;
      this.#error = messageOf(error);
      this.#startOver();
      this.#isNew = true;
      if (!hasSent) throw error;
    }
  }

  /** Whether more lines are to be sent at once. */
  async #sendBatch(): Promise<boolean> {
    const { clock } = this.#needs;
    this.#sender ??= await this.#openSender();
    const lines = await this.#reader.next(this.#sender.limits);
    if (lines.length === 0 || this.#isClosed) return false;
    const startedMs = clock.now().epochMilliseconds;
    const isFull = fills(lines, this.#sender.limits);
    const taken = await this.#send(this.#sender, lines, isFull);
    this.#error = '';
    const sent = lines.slice(0, taken);
    this.#count(sent);
    if (this.#sender.recalls) this.#remember(sent, startedMs);
    this.#moveTo(sent.at(-1)?.after ?? this.#position);
    if (taken === lines.length) return isFull;
    this.#reader.seek(this.#position);
    this.#isNew = true; // the others wait for the following lines
    return false;
  }

  async #send(sender: Sender, lines: readonly Line[], isFull: boolean): Promise<number> {
    const taken = (await sender.send(lines, this.#watcher === undefined && !isFull)) ?? lines.length;
    if (taken > 0 || !isFull) return taken;
    return (await sender.send(lines, true)) ?? lines.length;
  }

  async #finish(): Promise<void> {
    await this.#sender?.end();
    this.#dropSender();
    this.#recent.take(0);
    this.#error = '';
    for (const settle of this.#settled) settle();
    this.#settled.clear();
  }

  /** Counts lines that are gone, once, however often those behind them are sent. */
  #count(lines: readonly Line[]): void {
    const missing = lines.reduce((sum, line) => sum + (line.seq > this.#counted ? line.missing : 0), 0);
    if (missing > 0) this.#lose(missing, 'the log buffer was full before they were delivered');
    this.#counted = Math.max(this.#counted, lines.at(-1)?.seq ?? 0);
  }

  #remember(lines: readonly Line[], startedMs: number): void {
    this.#recent.add(this.#position, lines, startedMs, this.#needs.clock.now().epochMilliseconds);
  }

  /** A new connection; lines that may have been lost with the old one are sent again. */
  #startOver(): void {
    this.#isBroken = false;
    this.#dropSender();
    const from = this.#recent.take(this.#needs.clock.now().epochMilliseconds);
    if (from !== undefined) this.#moveTo(from);
    this.#reader.seek(this.#position);
  }

  #moveTo(position: Position): void {
    this.#position = position;
    writeCheckpoint(checkpointPath(this.#container.logPath), { position, lost: this.#lost });
  }

  #lose(lines: number, reason: string): void {
    this.#lost += lines;
    const about = { ...this.#about(), lines, inAll: this.#lost };
    this.#needs.log.warn(about, `lines of a container are lost: ${reason}`);
  }

  async #openSender(): Promise<Sender> {
    const { hostConfig } = this.#container;
    const sender = await this.#driver.deliver?.({
      container: this.#container,
      options: hostConfig.LogConfig.Config,
      clock: this.#needs.clock,
      broken: () => {
        this.#isBroken = true;
        this.wake();
      },
      refused: (lines, reason) => this.#lose(lines, reason),
    });
    if (sender === undefined) throw new Error(`log driver ${this.#driver.name} does not deliver`);
    this.#pauseMs = sender.pauseMs ?? PAUSE_MS;
    return sender;
  }

  #dropSender(): void {
    this.#sender?.[Symbol.dispose]();
    this.#sender = undefined;
  }

  #about(): Record<string, string> {
    return { container: this.#container.id, driver: this.#driver.name };
  }
}

/** Whether there may be more lines than these. */
function fills(lines: readonly Line[], limits: BatchLimits): boolean {
  const bytes = lines.reduce((sum, { text }) => sum + text.length, 0);
  return lines.length >= limits.lines || bytes > limits.bytes - MAX_PIECE;
}

/** Calls back when the file has changed, or another one has its name. */
function watchFile(path: string, clock: Clock, changed: () => void): Disposable {
  mkdirSync(dirname(path), { recursive: true, mode: 0o710 });
  try {
    // The folder and not the file: a rotation replaces the file.
    const watcher = watch(dirname(path), { persistent: false }, (_event, name) => {
      if (name === null || name === basename(path)) changed();
    });
    watcher.on('error', changed);
    return { [Symbol.dispose]: () => watcher.close() };
  } catch (error) {
    // The machine's watches are used up.
    if (!hasCode(error, 'ENOSPC') && !hasCode(error, 'EMFILE')) throw error;
    return everySecond(clock, changed);
  }
}

function everySecond(clock: Clock, call: () => void): Disposable {
  let timer: Disposable;
  const wait = (): void => {
    timer = clock.after(1000, () => {
      call();
      wait();
    });
  };
  wait();
  return { [Symbol.dispose]: () => timer[Symbol.dispose]() };
}
