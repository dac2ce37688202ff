/** One end of the pipe between two processes: `process` in a worker, a `Worker` in the primary one. */
export type Port = {
  send(message: object, sent?: (error: Error | null) => void): unknown;
  on(event: 'message', listener: (message: unknown) => void): unknown;
};

/** Handlers of the other side's questions, by name. */
export type Handlers = Readonly<Record<string, (argument: never) => unknown>>;

type Message =
  | Readonly<{ call: number; name: string; argument: unknown }>
  | Readonly<{ reply: number; value?: unknown; error?: string }>;

/** The other side has ended before it answered. */
export class ChannelClosed extends Error {
  override readonly name = 'ChannelClosed';
}

/** A notice has no reply. */
const NOTICE = 0;

/** Calls and notices between two processes, in the order in which they are sent. */
export class Channel {
  readonly #port: Port;
  readonly #handlers: Handlers;
  readonly #waiting = new Map<number, PromiseWithResolvers<unknown>>();
  #calls = NOTICE;

  constructor(port: Port, handlers: Handlers) {
    this.#port = port;
    this.#handlers = handlers;
    port.on('message', (message) => this.#receive(message as Message));
  }

  notify(name: string, argument: unknown): void {
    this.#send({ call: NOTICE, name, argument });
  }

  async call(name: string, argument: unknown): Promise<unknown> {
    this.#calls += 1;
    const id = this.#calls;
    const answer = Promise.withResolvers<unknown>();
    this.#waiting.set(id, answer);
    this.#send({ call: id, name, argument }, (error) => {
      if (this.#waiting.delete(id)) answer.reject(new ChannelClosed(error.message));
    });
    return await answer.promise;
  }

  /** The other side is gone: no more answers will come. */
  closed(reason: string): void {
    for (const { reject } of this.#waiting.values()) reject(new ChannelClosed(reason));
    this.#waiting.clear();
  }

  #receive(message: Message): void {
    if ('reply' in message) {
      const answer = this.#waiting.get(message.reply);
      this.#waiting.delete(message.reply);
      if (message.error === undefined) answer?.resolve(message.value);
      else answer?.reject(new Error(message.error));
      return;
    }
    const { call, name, argument } = message;
    const handle = this.#handlers[name];
    if (handle === undefined) throw new Error(`no process handles ${name} in this process`);
    const value = handle(argument as never);
    if (call !== NOTICE) void this.#reply(call, value);
  }

  async #reply(call: number, value: unknown): Promise<void> {
    try {
      this.#send({ reply: call, value: await value });
    } catch (error) {
      this.#send({ reply: call, error: error instanceof Error ? error.message : String(error) });
    }
  }

  /** Without a listener a pipe that is closing would end this process. */
  #send(message: Message, failed: (error: Error) => void = () => undefined): void {
    this.#port.send(message, (error) => {
      if (error !== null) failed(error);
    });
  }
}
