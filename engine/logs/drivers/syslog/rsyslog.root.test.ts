import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { NO_NETWORK, OWN_NETNS, StreamReceiver } from '@gantry/testing/receivers/log-receivers.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

const folder = mkdtempSync(join(tmpdir(), 'gantry-rsyslog-'));
const socket = join(folder, 'log.sock');
const output = join(folder, 'out');

let engine: TestEngine;
let port: number;
let rsyslog: ChildProcess | undefined;

before(async () => {
  const reserved = await StreamReceiver.start();
  ({ port } = reserved);
  await reserved[Symbol.asyncDispose]();
  engine = await TestEngine.start({ netns: OWN_NETNS, flags: NO_NETWORK });
});

after(async () => {
  await engine?.[Symbol.asyncDispose]();
  await endRsyslog('SIGTERM');
  rmSync(folder, { recursive: true });
});

/** A real rsyslogd that takes datagrams from a Unix socket and streams from TCP, and writes what it has understood. */
async function startRsyslog(): Promise<void> {
  const fields = ['syslogfacility-text', 'syslogseverity-text', 'programname', 'app-name', 'msg'];
  const template = fields.map((name) => `%${name}%`).join('|');
  writeFileSync(
    join(folder, 'conf'),
    `global(workDirectory="${folder}" maxMessageSize="64k")
     module(load="imuxsock" SysSock.Use="off") module(load="imptcp")
     input(type="imuxsock" Socket="${socket}" RateLimit.Interval="0" ParseTrusted="off")
     input(type="imptcp" Port="${port}" Address="127.0.0.1")
     template(name="seen" type="string" string="${template}\\n")
     action(type="omfile" file="${output}" template="seen")\n`,
  );
  rsyslog = spawn('rsyslogd', ['-n', '-f', join(folder, 'conf'), '-i', join(folder, 'pid')], { stdio: 'ignore' });
  await until(() => existsSync(socket), 'rsyslogd listens');
}

async function endRsyslog(signal: NodeJS.Signals): Promise<void> {
  if (rsyslog === undefined) return;
  const ended = once(rsyslog, 'exit');
  rsyslog.kill(signal);
  await ended;
  rsyslog = undefined;
  rmSync(socket, { force: true });
}

async function until(isSo: () => boolean, what: string): Promise<void> {
  for (let tries = 0; tries < 1200; tries += 1) {
    if (isSo()) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`not in time: ${what}; there is: ${written().slice(-1000)}`);
}

function written(): string {
  return existsSync(output) ? readFileSync(output, 'utf8') : '';
}

async function run(script: string, Config: Record<string, string>): Promise<string> {
  return await engine.run(['sh', '-c', script], {
    HostConfig: { NetworkMode: 'none', LogConfig: { Type: 'syslog', Config } },
  });
}

test('rsyslog understands messages over a Unix socket of datagrams and over TCP', async () => {
  await startRsyslog();

  await run('echo hello; echo oops >&2', { 'syslog-address': `unixgram://${socket}`, tag: 'grams' });
  const stream = {
    'syslog-address': `tcp://127.0.0.1:${port}`,
    'syslog-format': 'rfc5424micro',
    'syslog-facility': 'local3',
  };
  await run(`head -c 16000 /dev/zero | tr '\\0' l; echo; echo end`, { ...stream, tag: 'stream' });
  await until(() => /grams\|.*oops/.test(written()) && /hello/.test(written()) && /end\n/.test(written()), 'all lines');

  const lines = written().split('\n');
  assert.ok(lines.includes('daemon|info|grams|grams| hello'), lines.join('\n').slice(0, 500));
  assert.ok(lines.includes('daemon|err|grams|grams| oops'));
  assert.ok(lines.includes('local3|info|stream|stream|end'));
  assert.ok(lines.includes(`local3|info|stream|stream|${'l'.repeat(16_000)}`));
});

test('rsyslog that is killed and started again has every line', async () => {
  if (rsyslog === undefined) await startRsyslog();
  const numbers = (): number[] => [...written().matchAll(/numbered\|\s?line (\d+)\n/g)].map(([, text]) => Number(text));
  const script = 'trap "exit 0" TERM; n=0; while :; do n=$((n+1)); echo "line $n"; usleep 3000; done';
  const options = { 'syslog-address': `tcp://127.0.0.1:${port}`, 'syslog-format': 'rfc5424', tag: 'numbered' };

  const id = await run(script, options);
  await until(() => numbers().length > 50, 'the first lines');
  await endRsyslog('SIGKILL');
  await startRsyslog();
  await until(() => numbers().length > 200, 'lines after the kill');
  await engine.post(`/containers/${id}/stop`);
  const { stdout } = await engine.output(id);
  const last = Number(/line (\d+)\n$/.exec(stdout)?.[1]);
  await until(() => numbers().includes(last), 'the last line');

  const seen = new Set(numbers());
  const missing = Array.from({ length: last }, (_, index) => index + 1).filter((number) => !seen.has(number));
  assert.deepEqual(missing, []);
});
