import assert from 'node:assert/strict';
import { execFile, spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { promisify } from 'node:util';

const execute = promisify(execFile);
const here = import.meta.dirname;
const SANITIZED = join(here, '../../../build/gantry-resolver-sanitized');
const SEED = Number(process.env.GANTRY_ATTACK_SEED ?? Date.now() % 1_000_000);
const QUESTIONS = Number(process.env.GANTRY_QUESTIONS ?? 2000);
const PORT = 5353;

/** A server that fails the first question by TCP; prints how many questions came on each connection, and the answer's code. */
const FAIL_FIRST = `
const { createServer, connect } = require('node:net');
const queries = [];
createServer((client) => {
  const at = queries.push(0) - 1;
  client.on('error', () => client.destroy()).on('data', (query) => {
    queries[at] += 1;
    query[4] = 0x81;
    query[5] = at === 0 ? 0x82 : 0x80;
    client.write(query);
  });
}).listen(53, '127.0.0.53', () => {
  const question = Buffer.from('\\0\\x1d\\0\\x01\\x01\\0\\0\\x01\\0\\0\\0\\0\\0\\0\\x07example\\x03org\\0\\0\\x01\\0\\x01', 'latin1');
  const socket = connect(${PORT}, '127.0.0.11', () => socket.write(question));
  socket.on('data', (answer) => process.stdout.write(JSON.stringify([queries, answer[5] & 15]), () => process.exit()));
});`;

/** A server that answers nobody; prints the number of questions once a question for `last` has come, after 100 for `same`. */
const SILENT = `
const { createSocket } = require('node:dgram');
const [server, client] = [createSocket('udp4'), createSocket('udp4')];
let count = 0;
server.on('message', (query) => {
  if (query[12] === 4 && query[13] === 0x6c) process.stdout.write(String(count), () => process.exit());
  count += 1;
}).bind(53, '127.0.0.53', () => {
  const question = (id, name) => Buffer.from([0, 0, id >> 8, id & 255, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 4, ...Buffer.from(name), 0, 0, 1, 0, 1]).subarray(2);
  for (let id = 0; id < 100; id += 1) client.send(question(id, 'same'), ${PORT}, '127.0.0.11');
  setInterval(() => client.send(question(100, 'last'), ${PORT}, '127.0.0.11'), 50);
});`;

suite('the resolver under the address and undefined-behaviour sanitizers', { concurrency: false }, () => {
  let folder: string;
  let container: ChildProcess;
  let control: Socket;
  before(async () => {
    const built = spawnSync('make', ['-s', '-C', join(here, '../../../shim'), 'sanitized'], { encoding: 'utf8' });
    assert.equal(built.status, 0, built.stderr);
    folder = mkdtempSync(join(tmpdir(), 'gantry-resolver-'));
    const script = 'ip link set lo up; echo up; exec sleep 100000';
    container = spawn('unshare', ['--net', 'sh', '-c', script], { stdio: ['ignore', 'pipe', 'ignore'] });
    await once(container.stdout!, 'data');
    const env = {
      PATH: process.env.PATH,
      ASAN_OPTIONS: `log_path=${folder}/report`,
      UBSAN_OPTIONS: `log_path=${folder}/report:print_stacktrace=1`,
    };
    const started = spawnSync(SANITIZED, [folder], { env, stdio: 'ignore' });
    assert.equal(started.status, 0);
    control = connect(join(folder, 'socket'));
    await once(control, 'connect');
    const netns = `/proc/${container.pid}/ns/net`;
    await tell('begin');
    await tell('net n1 one');
    await tell('name n1 c1 10.1.0.2 - web web.one');
    await tell(`box c1 ${container.pid} ${netns} ${PORT} n1 c:127.0.0.53,c:127.0.0.53 - 0`);
  });
  after(async () => {
    control.destroy();
    container.kill('SIGKILL');
    await once(container, 'close');
    rmSync(folder, { recursive: true });
  });

  async function tell(line: string): Promise<void> {
    control.write(`${line}\n`);
    const [answer] = (await once(control, 'data')) as [Buffer];
    assert.equal(answer.toString(), 'ok\n', line);
  }

  const workers = (): string[] => {
    return readdirSync('/proc').filter(
      (pid) => /^\d+$/.test(pid) && commandOf(pid).startsWith(`${SANITIZED}\0${folder}`),
    );
  };

  async function inContainer(...program: string[]): Promise<string> {
    const netns = `--net=/proc/${container.pid}/ns/net`;
    return (await execute('nsenter', [netns, process.execPath, ...program])).stdout;
  }

  test('after a server that fails by TCP the next one is asked', async () => {
    assert.deepEqual(JSON.parse(await inContainer('-e', FAIL_FIRST)), [[1, 1], 0]);
  });

  test(`${QUESTIONS} hostile questions and answers: every question that is one is answered, and nothing is reported`, async (t) => {
    t.diagnostic(`GANTRY_ATTACK_SEED=${SEED}`);
    const before = workers();

    t.diagnostic(await inContainer(join(here, '../hostile-names.ts'), String(PORT), String(SEED), String(QUESTIONS)));

    assert.deepEqual(workers(), before, 'it has begun anew');
    assert.equal(await inContainer('-e', SILENT), '1');
    await tell('unbox c1'); // while 100 wait for one answer
    control.write('quit\n');
    await once(control, 'close');
    while (workers().length > 0) await setTimeout(10);
    const told = readdirSync(folder).filter((name) => name.startsWith('report'));
    assert.deepEqual(
      told.map((name) => readFileSync(join(folder, name), 'utf8')),
      [],
    );
  });
});

function commandOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
  } catch {
    return ''; // it has ended meanwhile
  }
}
