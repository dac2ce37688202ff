import { UnixDatagrams } from '../../host/unix-datagrams.ts';
import { sleep, type Clock } from '../../lib/clock.ts';
import { hasCode } from '../../lib/errors.ts';

type Receiver = Readonly<{
  /** The first existing one is used. */
  paths: readonly string[];
  clock: Clock;
  tooLong: () => void;
}>;

const RETRY_DELAY_MS = 10;

/** Datagrams to a program of this machine, whose queue may be full for a while. */
export class LocalDatagrams implements Disposable {
  readonly #receiver: Receiver;
  #socket: UnixDatagrams | undefined;
  #isClosed = false;

  constructor(receiver: Receiver) {
    this.#receiver = receiver;
  }

  async send(messages: Iterable<Buffer>): Promise<void> {
    this.#socket ??= connected(this.#receiver.paths);
    for (const message of messages) {
      while (!this.#sent(message)) await sleep(this.#receiver.clock, RETRY_DELAY_MS);
    }
  }

  /** The receiver has all of them. */
  async end(): Promise<void> {
    // Its queue is in the kernel.
  }

  #sent(message: Buffer): boolean {
    if (this.#isClosed) throw new Error('the delivery ends');
    try {
      return this.#socket!.send(message);
    } catch (error) {
      if (!hasCode(error, 'EMSGSIZE')) throw error;
      this.#receiver.tooLong();
      return true;
    }
  }

  [Symbol.dispose](): void {
    this.#isClosed = true;
    this.#socket?.[Symbol.dispose]();
  }
}

function connected(paths: readonly string[]): UnixDatagrams {
  let failure: unknown = new Error('no socket is named');
  for (const path of paths) {
    try {
      return new UnixDatagrams(path);
    } catch (error) {
      failure = error;
    }
  }
  throw failure;
}
