import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

import type { TestGateway } from './test-gateway.ts';

/** No test waits longer than this for anything. */
const PATIENCE_MS = 120_000;

export type RawAnswer = Readonly<{
  status: number;
  reason: string;
  headers: ReadonlyMap<string, string>;
  body: string;
}>;

/** A connection on which a test says exactly what it wants, byte by byte. */
export class RawClient implements Disposable {
  readonly socket: Socket;
  readonly closed: Promise<unknown>;
  received = '';
  #ended = false;
  #wake = (): void => undefined;

  private constructor(socket: Socket) {
    this.socket = socket;
    this.closed = new Promise((resolve) => socket.once('close', resolve));
    socket.on('error', () => socket.destroy());
    socket.on('data', (data) => {
      this.received += data.toString('latin1');
      this.#wake();
    });
    for (const event of ['end', 'close']) {
      socket.on(event, () => {
        this.#ended = true;
        this.#wake();
      });
    }
  }

  /** `from`: the loopback address that it comes from. Every one is a caller of its own. */
  static async connect({ target }: Pick<TestGateway, 'target'>, from = '127.0.0.1'): Promise<RawClient> {
    if ('socketPath' in target) throw new Error('a gateway on a port is expected');
    const socket = connect({ ...target, localAddress: from, noDelay: true });
    await once(socket, 'connect');
    return new RawClient(socket);
  }

  send(text: string): this {
    this.socket.write(text, 'latin1');
    return this;
  }

  /** Waits until what was received satisfies `enough`, and takes it out. Fails when the connection ends before that. */
  async take<T>(enough: (text: string, ended: boolean) => { value: T; length: number } | undefined): Promise<T> {
    const deadline = performance.now() + PATIENCE_MS;
    for (;;) {
      const found = enough(this.received, this.#ended);
      if (found !== undefined) {
        this.received = this.received.slice(found.length);
        return found.value;
      }
      if (this.#ended) throw new Error(`the connection has ended after: ${JSON.stringify(this.received)}`);
      const left = deadline - performance.now();
      if (left <= 0) throw new Error(`nothing more came than: ${JSON.stringify(this.received.slice(0, 500))}`);
      const { promise, resolve } = Promise.withResolvers<void>();
      const timer = setTimeout(resolve, left);
      this.#wake = resolve;
      await promise;
      clearTimeout(timer);
    }
  }

  async until(part: string): Promise<string> {
    return await this.take((text) => {
      const at = text.indexOf(part);
      return at < 0 ? undefined : { value: text.slice(0, at + part.length), length: at + part.length };
    });
  }

  /** The next answer, whole. */
  async answer(): Promise<RawAnswer> {
    return await this.take(answerIn);
  }

  [Symbol.dispose](): void {
    this.socket.destroy();
  }
}

function answerIn(text: string, ended: boolean): { value: RawAnswer; length: number } | undefined {
  const headEnd = text.indexOf('\r\n\r\n');
  if (headEnd < 0) return undefined;
  const [first = '', ...lines] = text.slice(0, headEnd).split('\r\n');
  const [, status = '', ...reason] = first.split(' ');
  const headers = new Map<string, string>();
  for (const line of lines) {
    const colon = line.indexOf(':');
    headers.set(line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim());
  }
  const rest = text.slice(headEnd + 4);
  const made = (body: string, length: number): { value: RawAnswer; length: number } => ({
    value: { status: Number(status), reason: reason.join(' '), headers, body },
    length: headEnd + 4 + length,
  });
  if (status === '204' || status === '304' || status.startsWith('1')) return made('', 0);
  const length = headers.get('content-length');
  if (length !== undefined) {
    return rest.length < Number(length) ? undefined : made(rest.slice(0, Number(length)), Number(length));
  }
  if (headers.get('transfer-encoding') === 'chunked') {
    const end = /(?:^|\r\n)0\r\n((?:[^\r\n]+\r\n)*)\r\n/.exec(rest);
    return end === null ? undefined : made(rest.slice(0, end.index), end.index + end[0].length);
  }
  return ended ? made(rest, rest.length) : undefined;
}
