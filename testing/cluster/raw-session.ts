import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

import { eventually } from '../eventually.ts';
import type { ClusterHost } from './hosts.ts';

/** Opens a session of a node on port 2377, and copies bytes: from the standard input to it, from it to the standard output. */
const PIPE = `
const [address, root, cert, key, reads] = JSON.parse(process.argv[1]);
const { request } = process.getBuiltinModule('node:https');
const headers = { Connection: 'Upgrade', Upgrade: 'gantry-session', 'Content-Length': '0' };
const options = { method: 'POST', ca: root, cert, key, servername: 'swarm-manager', headers, agent: false };
const sent = request('https://' + address + '/v1/session', options);
sent.on('upgrade', (answer, socket) => {
  socket.on('error', () => process.exit());
  socket.on('close', () => process.exit());
  process.stdin.pipe(socket);
  if (reads) socket.pipe(process.stdout);
});
sent.on('response', ({ statusCode }) => { console.error('refused with ' + statusCode); process.exit(1); });
sent.on('error', (error) => { console.error(error.message); process.exit(1); });
sent.end();
`;

/** A description of a node that its leader accepts. */
export const DESCRIPTION = {
  hostname: 'raw',
  platform: { architecture: 'x86_64', os: 'linux' },
  resources: { nanoCpus: 1e9, memoryBytes: 1e9 },
  engine: { version: '1', labels: {}, plugins: [] },
};

type Message = { say: string } & Record<string, unknown>;

/** A session with the leader by a worker's certificate, in which a test says what it likes. The worker's daemon must have ended. */
export class RawSession implements AsyncDisposable {
  readonly #child: ChildProcess;
  readonly #worker: ClusterHost;
  readonly #ended: Promise<unknown>;
  readonly #heard: Message[] = [];

  private constructor(worker: ClusterHost, child: ChildProcess) {
    this.#worker = worker;
    this.#child = child;
    this.#ended = once(child, 'exit');
    child.stdin!.on('error', () => undefined); // it ends with the session
  }

  /** `reads: false`: takes nothing of what the leader sends. */
  static async open(worker: ClusterHost, manager: ClusterHost, { reads = true } = {}): Promise<RawSession> {
    if (!worker.engine.hasEnded) throw new Error(`the daemon of ${worker.name} would replace this session`);
    const file = readFileSync(join(worker.engine.directory, 'data/cluster/member.json'), 'utf8');
    const { root, certificate, key } = JSON.parse(file) as Record<string, string>;
    const words = JSON.stringify([`${manager.ip}:2377`, root, certificate, key, reads]);
    const child = spawn('nsenter', [`--net=${worker.engine.netns}`, process.execPath, '-e', PIPE, words], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    const session = new RawSession(worker, child);
    if (reads) {
      createInterface({ input: child.stdout }).on('line', (line) => session.#heard.push(JSON.parse(line) as Message));
    }
    return session;
  }

  get isOver(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  /** Resolves at the end of the session. */
  async over(): Promise<void> {
    await eventually('the end of the session', async () => await Promise.resolve(this.isOver || undefined));
  }

  say(message: object): void {
    this.send(`${JSON.stringify(message)}\n`);
  }

  /** Introduces the node, by its own address or another one; the leader has named all tasks when this returns. */
  async hello(address = this.#worker.ip): Promise<void> {
    const hostname = this.#worker.name;
    this.say({ say: 'hello', description: { ...DESCRIPTION, hostname }, address });
    await this.heard(({ say }) => say === 'allTasks');
  }

  /** Bytes, whatever they are. */
  send(text: string): boolean {
    return this.#child.stdin!.write(text);
  }

  /** The first message that is as expected, also an earlier one. */
  async heard(isExpected: (message: Message) => boolean): Promise<Message> {
    return await eventually('a message of the leader', async () => {
      if (this.isOver) throw new Error('the session is over');
      return await Promise.resolve(this.#heard.find(isExpected));
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#ended;
  }
}
