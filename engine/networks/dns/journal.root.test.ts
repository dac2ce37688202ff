import assert from 'node:assert/strict';
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';

import { hasCode } from '../../lib/errors.ts';

const PROGRAM = process.env.GANTRY_RESOLVER ?? join(import.meta.dirname, '../../../build/gantry-resolver');
const TIMEOUT_MS = 60_000;

/** Another process that begins a session, and keeps it until it is killed. */
const OTHER_DAEMON = `
const socket = require('node:net').connect(process.argv[1], () => socket.write('begin\\nend\\n'));
socket.on('data', (answers) => process.stdout.write(answers));`;

suite('the journal of the resolver', { concurrency: false }, () => {
  let folder: string;
  let container: ChildProcess;
  /** A state with a container that is served. */
  let lines: string[];

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'gantry-test-'));
    container = spawn('unshare', ['--net', 'sh', '-c', 'ip link set lo up; echo up; exec sleep 100000'], {
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    await once(container.stdout!, 'data');
    const { pid } = container;
    lines = [
      'net n1 one',
      'name n1 c1 10.1.0.2 - web www',
      'name n1 c2 10.1.0.3 - database',
      `box c1 ${pid} /proc/${pid}/ns/net 61053 n1 h:192.0.2.53 db=database 0`,
    ];
  });
  after(async () => {
    container.kill('SIGKILL');
    await once(container, 'close');
    rmSync(folder, { recursive: true });
  });

  const journal = (): string => readFileSync(join(folder, 'journal'), 'utf8');
  const write = (text: string): void => writeFileSync(join(folder, 'journal'), text);
  const startResolver = (): unknown => execFileSync(PROGRAM, [folder], { stdio: 'ignore' });

  /** Pid of the worker below the supervisor, if it is another than `before`. */
  async function worker(before = 0): Promise<number> {
    for (const until = Date.now() + TIMEOUT_MS; Date.now() < until; await setTimeout(5)) {
      const [, ...found] = processesOf(folder);
      if (found[0] !== undefined && found[0] !== before) return found[0];
    }
    throw new Error('there is no worker');
  }

  /** Replaces the worker, which reads the journal, and writes it anew. */
  async function crash(): Promise<void> {
    const pid = await worker();
    process.kill(pid, 'SIGKILL');
    await worker(pid);
    (await Daemon.connect(folder))[Symbol.dispose](); // it listens after it has read
  }

  async function quit(): Promise<void> {
    using daemon = await Daemon.begin(folder);
    await daemon.quit();
    for (const until = Date.now() + TIMEOUT_MS; processesOf(folder).length > 0; await setTimeout(5)) {
      assert.ok(Date.now() < until, 'the resolver has not ended');
    }
  }

  test('a resolver that was told to quit leaves nothing that its successor would obey', async () => {
    startResolver();
    await quit();

    startResolver();
    using daemon = await Daemon.begin(folder);
    const answers = await daemon.tell(...lines);
    await quit();

    assert.deepEqual(answers, ['ok', 'ok', 'ok', 'ok']);
  });

  test('commands in a journal of an older version are passed over', async () => {
    write(
      [...lines.slice(0, 3), 'begin', 'name n1 c3 - - a%b', 'quit', 'name n1 c4 10.1.0.4 - last', 'end', ''].join('\n'),
    );
    startResolver();

    using daemon = await Daemon.begin(folder);
    const answers = await daemon.tell('net n1 one', 'name n1 c5 10.1.0.5 - younger');
    assert.deepEqual(answers, ['ok', 'ok']);
    await quit();
  });

  test('a journal that was cut at any byte gives the whole lines before the cut, and nothing else', async () => {
    write('');
    startResolver();
    using daemon = await Daemon.begin(folder);
    await daemon.tell(...lines, 'end');
    const whole = journal();
    await quit();
    assert.equal(whole.trimEnd().split('\n').length, lines.length);

    const isNearEnd = (size: number): boolean => whole.slice(Math.max(0, size - 2), size + 2).includes('\n');
    for (let size = 0; size <= whole.length; size += 1) {
      if (size % 8 !== 0 && !isNearEnd(size)) continue; // all other bytes are like their neighbours
      write(whole.slice(0, size));
      startResolver();
      const kept = journal();
      await quit();
      const expected = whole.slice(0, whole.lastIndexOf('\n', size - 1) + 1);
      assert.deepEqual(
        kept.split('\n').toSorted(),
        (size === 0 ? '' : expected).split('\n').toSorted(),
        `cut at ${size}`,
      );
    }
    write(`${whole.slice(0, 40)}${'\0'.repeat(4096)}\n${whole}`);
    startResolver();
    assert.ok(whole.startsWith(journal()), journal());
    await quit();
  });

  test('a journal without the start of a process serves no other process with its pid', async () => {
    write(`${lines.join('\n')}\n`);
    startResolver();
    const kept = journal();
    await quit();

    assert.doesNotMatch(kept, /^box/m);
  });

  test('a full disk refuses no command, spoils no line, and is made up for once there is room', async () => {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64k,mode=700', 'none', folder]);
    using _disk = { [Symbol.dispose]: () => execFileSync('umount', [folder]) };
    startResolver();
    using daemon = await Daemon.begin(folder);
    await daemon.tell(...lines, 'end');
    const name = (n: number): string => `name n1 more${n} 10.1.1.${n} - ${'x'.repeat(60)}.${'y'.repeat(60)}.${n}`;
    fill(folder);

    const rest = statfsSync(folder);
    const answers: string[] = [];
    for (let n = 0; n < 100; n += 1) answers.push(...(await daemon.tell(name(n))));
    assert.deepEqual([...new Set(answers)], ['ok'], JSON.stringify(rest));
    daemon[Symbol.dispose]();
    await crash();
    const full = journal();
    for (const line of full.trimEnd().split('\n')) assert.match(line, /^(?:net|name|box) /);
    assert.match(full, /^box c1 /m);
    assert.doesNotMatch(full, /more99/);

    using next = await Daemon.begin(folder);
    const again = [...lines, ...Array.from({ length: 100 }, (_, n) => name(n)), 'end'];
    assert.deepEqual([...new Set(await next.tell(...again))], ['ok']);
    rmSync(join(folder, 'filler'));
    for (const until = Date.now() + TIMEOUT_MS; !journal().includes('more99'); await setTimeout(20)) {
      assert.ok(Date.now() < until, journal());
    }
    assert.equal(journal().trimEnd().split('\n').length, 104);
    next[Symbol.dispose]();
    await quit();
  });

  test('a second daemon has no say while the first one lives, and takes over from a dead one', async () => {
    startResolver();
    const first = spawn(process.execPath, ['-e', OTHER_DAEMON, join(folder, 'socket')], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    await once(first.stdout, 'data');

    using second = await Daemon.connect(folder);
    assert.deepEqual(await second.tell('begin'), ['error another daemon commands it']);
    await second.closed;
    for (const command of ['quit', 'net n1 one', 'end']) {
      using stranger = await Daemon.connect(folder);
      assert.deepEqual(await stranger.tell(command), ['error the complete state comes first']);
      await stranger.closed;
    }

    first.kill('SIGKILL');
    await once(first, 'close');
    using third = await Daemon.begin(folder);
    assert.deepEqual(await third.tell('net n1 one', 'end'), ['ok', 'ok']);
    await quit();
  });

  const refused: [line: string, reason: string][] = [
    ['name n1 c1 10.1.0.2 - evil%0Aquit', 'not a name'],
    ['name n1 c1 10.1.0.2 - evil%20web', 'not a name'],
    ['name n1 c1 10.1.0.2 - evil%00', 'not a name'],
    ['name n1 c1 10.1.0.2 - evil%', 'not a name'],
    ['name n1 c1 10.1.0.2 - evil%zz', 'not a name'],
    [`name n1 c1 10.1.0.2 - ${'x'.repeat(64)}`, 'not a name'],
    [`name n1 c1 10.1.0.2 - ${'x.'.repeat(127)}x`, 'not a name'],
    [`name n1 c1 10.1.0.2 - web ${'x'.repeat(100_000)}`, 'not a name'],
    ['name n1 c1 10.1.0.2 - web..www', 'not a name'],
    [`name n1 ${'c'.repeat(129)} 10.1.0.2 - web`, 'the names have no owner'],
    ['name n2 c1 10.1.0.2 - web', 'no such network'],
    ['net n1 evil%0Aquit', "the network's name is not one"],
    ['box c1 1 /proc/1/ns/net', 'not understood'],
    ['name n1 c1', 'not understood'],
    ['web\0quit', 'not understood'],
    ['', 'not understood'],
    [' ', 'not understood'],
  ];
  test('a broken field, a name that is none, and a long one are refused, and change nothing', async () => {
    startResolver();
    using daemon = await Daemon.begin(folder);
    await daemon.tell(...lines.slice(0, 3), 'end');
    const kept = journal();

    for (const [line, reason] of refused) assert.deepEqual(await daemon.tell(line), [`error ${reason}`], line);

    assert.equal(journal(), kept);
    assert.deepEqual(await daemon.tell('x'.repeat(1024 * 1024 + 70_000)), ['error the command is too long']);
    await daemon.closed;
    await quit();
  });
});

/** A daemon's session with the resolver. */
class Daemon implements Disposable {
  readonly #socket: Socket;
  readonly closed: Promise<void>;
  #text = '';

  private constructor(socket: Socket) {
    this.#socket = socket;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.closed = promise;
    socket.on('close', resolve).on('error', () => undefined);
    socket.setEncoding('utf8').on('data', (text: string) => {
      this.#text += text;
      socket.emit('answers');
    });
  }

  static async connect(folder: string): Promise<Daemon> {
    const until = Date.now() + TIMEOUT_MS;
    for (;;) {
      const socket = connect(join(folder, 'socket'));
      try {
        await once(socket, 'connect');
        return new Daemon(socket);
      } catch (error) {
        // A worker that has just begun does not listen yet, at the socket of the one before.
        if (!hasCode(error, 'ECONNREFUSED') || Date.now() > until) throw error;
      }
      await setTimeout(5);
    }
  }

  static async begin(folder: string): Promise<Daemon> {
    const daemon = await Daemon.connect(folder);
    assert.deepEqual(await daemon.tell('begin'), ['ok']);
    return daemon;
  }

  /** The answer of each command; fewer if the session ends. */
  async tell(...commands: string[]): Promise<string[]> {
    this.#socket.write(commands.map((command) => `${command}\n`).join(''));
    while (this.#text.split('\n').length <= commands.length && !this.#socket.destroyed) {
      await Promise.race([once(this.#socket, 'answers'), this.closed]);
    }
    const answers = this.#text.split('\n').slice(0, -1);
    this.#text = '';
    return answers;
  }

  async quit(): Promise<void> {
    this.#socket.write('quit\n');
    await this.closed;
  }

  [Symbol.dispose](): void {
    this.#socket.destroy();
  }
}

/** Takes all space that is left. */
function fill(folder: string): void {
  assert.throws(
    () => {
      for (let n = 0; ; n += 1) writeFileSync(join(folder, 'filler'), Buffer.alloc(4096), { flag: 'a' });
    },
    { code: 'ENOSPC' },
  );
}

/** The pids of a resolver's processes, parents first. */
function processesOf(folder: string): number[] {
  const parents = new Map<number, number>();
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    try {
      const words = readFileSync(`/proc/${name}/cmdline`, 'utf8').split('\0');
      if (words[0] !== PROGRAM || words[1] !== folder) continue;
      const stat = readFileSync(`/proc/${name}/stat`, 'utf8');
      parents.set(Number(name), Number(stat.slice(stat.lastIndexOf(')')).split(' ')[2]));
    } catch {
      continue; // it ended after it was listed
    }
  }
  const isChild = (pid: number): boolean => parents.has(parents.get(pid)!);
  return [...parents.keys()].toSorted((a, b) => Number(isChild(a)) - Number(isChild(b)));
}
