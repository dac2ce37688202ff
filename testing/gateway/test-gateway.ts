import { type ChildProcess, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, type IncomingMessage, request, type RequestOptions } from 'node:http';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';

import type { Config } from '@gantry/gateway/config/schema.ts';
import type { StatusBody } from '@gantry/limiter/present.ts';

/** The bundle under `./gantry test`; a test file that is run by itself starts the sources. */
const MAIN = process.env['GANTRY_GATEWAY'] ?? join(dirname(dirname(import.meta.dirname)), 'gateway/main.ts');

/** A gateway that does not start, or does not log what is waited for, fails the test after this. */
const MAX_WAIT_MS = 120_000;

/** Settings as a file has them: everything may be left out. */
export type Settings = Optional<Config>;
type Optional<T> = T extends readonly (infer E)[]
  ? readonly Optional<E>[]
  : T extends object
    ? { [Key in keyof T]?: Optional<T[Key]> }
    : T;

export type Answer = Readonly<{
  status: number;
  statusText: string;
  headers: Readonly<Record<string, string>>;
  body: string;
}>;

export type Request = Readonly<{
  method?: string;
  headers?: Readonly<Record<string, string | readonly string[]>>;
  body?: string | Buffer;
  /** Sent as `Authorization: Bearer …`. */
  token?: string;
  /** The loopback address that it comes from, such as 127.0.0.7: every one is a caller of its own. */
  from?: string;
  /** Leaves early. */
  signal?: AbortSignal;
}>;

/** One line of the log. */
export type LogRecord = Readonly<Record<string, unknown> & { level: number; msg: string }>;

export type Finished = Readonly<{ code: number | null; output: string }>;

/** Hash for an identity's `sha256`. */
export function sha256(secret: string): string {
  return createHash('sha256').update(secret).digest('hex');
}

/**
 * A gateway process of its own, started as an operator starts it, with a log to wait for.
 *
 * It listens on a port of the kernel's choice, or on what `listen` says, and has its admin socket in its own folder.
 */
export class TestGateway implements AsyncDisposable {
  /** Its configuration file, admin socket and whatever else the test puts there; removed in the end. */
  readonly folder: string;
  readonly file: string;
  readonly adminSocket: string;
  /** As they were last written. */
  settings: Settings | string = {};
  readonly log: LogRecord[] = [];
  /** Everything on standard output and standard error. */
  output = '';
  readonly exited: Promise<number | null>;
  #addresses: readonly string[] = [];
  #closed = false;
  readonly #process: ChildProcess;
  readonly #logged = new EventEmitter();
  readonly #agent = new Agent({ keepAlive: true });

  private constructor(folder: string, settings: Settings | string, args: readonly string[] | undefined) {
    this.folder = folder;
    this.file = join(folder, 'gateway.yaml');
    this.adminSocket = join(folder, 'admin.sock');
    this.write(settings);
    this.#process = spawn(process.execPath, [MAIN, ...(args ?? ['--config', this.file])], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.exited = ended(this.#process);
    this.#process.once('close', () => {
      this.#closed = true;
      this.#logged.emit('more');
    });
    this.#process.stderr?.on('data', (chunk: Buffer) => (this.output += chunk.toString()));
    createInterface({ input: this.#process.stdout! }).on('line', (line) => this.#read(line));
  }

  /** `args` instead of `--config FILE`. The upstream is a key like the others. */
  static async start(settings: Settings | string, args?: readonly string[]): Promise<TestGateway> {
    const gateway = new TestGateway(mkdtempSync(join(tmpdir(), 'gantry-gateway-')), settings, args);
    try {
      const ready = await gateway.logged('ready');
      gateway.#addresses = ready['addresses'] as string[];
      return gateway;
    } catch (error) {
      await gateway[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** From now on nobody reads its log. */
  loseReader(): void {
    this.#process.stdout?.destroy();
  }

  get pid(): number {
    return this.#process.pid ?? 0;
  }

  /** As the gateway names them: `http://127.0.0.1:1234`, `unix:/path`. */
  get addresses(): readonly string[] {
    return this.#addresses;
  }

  /** The first address. */
  get url(): string {
    return this.#addresses[0] ?? '';
  }

  /** Where to connect, for `node:http`. */
  get target(): { socketPath: string } | { host: string; port: number } {
    if (this.url.startsWith('unix:')) return { socketPath: this.url.slice(5) };
    const { hostname, port } = new URL(this.url);
    return { host: hostname.replace(/^\[(.*)\]$/, '$1'), port: Number(port) };
  }

  /** A connection without a request, from a loopback address where one is given. */
  connect(from?: string): Socket {
    const { target } = this;
    if ('socketPath' in target) return connect({ path: target.socketPath });
    return connect({ ...target, noDelay: true, ...(from === undefined ? {} : { localAddress: from }) });
  }

  /**
   * Writes the configuration file; text as it is, settings with an address and an admin socket of their own. `{folder}`
   * stands for this gateway's folder.
   */
  write(settings: Settings | string): void {
    this.settings = settings;
    const own = { listen: '127.0.0.1:0' };
    const written =
      typeof settings === 'string'
        ? settings
        : JSON.stringify({ ...own, ...settings, admin: { socket: this.adminSocket, ...settings.admin } });
    writeFileSync(this.file, written.replaceAll('{folder}', this.folder));
  }

  /** Sends a request with its path as it is written, and reads the whole answer. */
  async request(path: string, options: Request = {}): Promise<Answer> {
    const incoming = await this.open(path, options);
    const body = await text(incoming);
    if (!incoming.complete) throw new Error(`the answer to ${path} is not complete`);
    return {
      status: incoming.statusCode ?? 0,
      statusText: incoming.statusMessage ?? '',
      headers: incoming.headers as Record<string, string>,
      body,
    };
  }

  /** Like `request`, without reading the answer's body. */
  async open(path: string, { method, headers, body, token, from, signal }: Request = {}): Promise<IncomingMessage> {
    const options: RequestOptions = {
      ...this.target,
      path,
      agent: this.#agent,
      headers: { ...headers, ...(token === undefined ? {} : { authorization: `Bearer ${token}` }) },
      ...(method === undefined ? {} : { method }),
      ...(from === undefined ? {} : { localAddress: from }),
      ...(signal === undefined ? {} : { signal }),
    };
    const outgoing = request(options);
    outgoing.end(body);
    const [incoming] = (await once(outgoing, 'response')) as [IncomingMessage];
    return incoming;
  }

  /** The body of `GET /rate_limit`. */
  async rateLimit(options: Request = {}): Promise<StatusBody> {
    return await this.rateLimitAt('/rate_limit', options);
  }

  async rateLimitAt(path: string, options: Request = {}): Promise<StatusBody> {
    const { body } = await this.request(path, options);
    return JSON.parse(body) as StatusBody;
  }

  /** The first line of the log with this message, after the first `skip` lines; waits for it. */
  async logged(msg: string | RegExp, skip = 0): Promise<LogRecord> {
    const signal = AbortSignal.timeout(MAX_WAIT_MS);
    for (;;) {
      const found = this.log
        .slice(skip)
        .find((line) => (msg instanceof RegExp ? msg.test(line.msg) : line.msg === msg));
      if (found !== undefined) return found;
      if (this.#closed) throw new Error(`the gateway has ended without logging ${String(msg)}:\n${this.output}`);
      await once(this.#logged, 'more', { signal }).catch((error: unknown) => {
        throw new Error(`the gateway does not log ${String(msg)}:\n${this.output}`, { cause: error });
      });
    }
  }

  /** Writes other settings and has them read; gives the line of the log that says what came of it. */
  async reload(settings: Settings | string): Promise<LogRecord> {
    this.write(settings);
    const before = this.log.length;
    this.signal('SIGHUP');
    return await this.logged(/^the settings were (not )?reloaded/, before);
  }

  signal(signal: NodeJS.Signals): void {
    this.#process.kill(signal);
  }

  /** `gantry gateway VERB …` on the admin socket of this one. */
  async cli(...args: readonly string[]): Promise<Finished> {
    return await runGatewayCommand(...args, '--socket', this.adminSocket);
  }

  /** The values of `/metrics`, by name with labels as they are written there. */
  async metrics(): Promise<Map<string, number>> {
    const outgoing = request({ socketPath: this.adminSocket, path: '/metrics', agent: false });
    outgoing.end();
    const [incoming] = (await once(outgoing, 'response')) as [IncomingMessage];
    const lines = (await text(incoming)).split('\n').filter((line) => line !== '' && !line.startsWith('#'));
    return new Map(
      lines.map((line) => [line.slice(0, line.lastIndexOf(' ')), Number(line.slice(line.lastIndexOf(' ') + 1))]),
    );
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#agent.destroy();
    if (!this.#closed) {
      this.signal('SIGTERM');
      const timer = setTimeout(() => this.signal('SIGKILL'), MAX_WAIT_MS);
      await this.exited;
      clearTimeout(timer);
    }
    rmSync(this.folder, { recursive: true, force: true });
  }

  #read(line: string): void {
    this.output += `${line}\n`;
    if (line.startsWith('{')) this.log.push(JSON.parse(line) as LogRecord);
    this.#logged.emit('more');
  }
}

/** Runs `gantry gateway …` to its end. */
export async function runGatewayCommand(...args: readonly string[]): Promise<Finished> {
  const child = spawn(process.execPath, [MAIN, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: MAX_WAIT_MS,
    killSignal: 'SIGKILL',
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (output += chunk.toString()));
  const code = await ended(child);
  return { code, output };
}

async function ended(child: ChildProcess): Promise<number | null> {
  const [code] = (await once(child, 'close')) as [number | null];
  return code;
}
