import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { NO_NETWORK, OWN_NETNS, StreamReceiver, UdpReceiver } from '@gantry/testing/receivers/log-receivers.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

let engine: TestEngine;

before(async () => {
  engine = await TestEngine.start({ netns: OWN_NETNS, flags: NO_NETWORK });
});

after(async () => {
  await engine?.[Symbol.asyncDispose]();
});

type Options = Record<string, string>;
type Inspect = { LogPath: string; LogDelivery?: { Lost: number; Error: string } };

/** Prints its number, one in ten milliseconds or so, until it is told to end. */
const COUNTING = 'trap "exit 0" TERM; n=0; while :; do n=$((n+1)); echo "line $n"; usleep 3000; done';

function withLog(Type: string, Config: Options): Record<string, unknown> {
  return { HostConfig: { NetworkMode: 'none', LogConfig: { Type, Config } } };
}

async function freePort(): Promise<number> {
  await using receiver = await StreamReceiver.start();
  return receiver.port;
}

function numbersIn(text: string): number[] {
  return [...text.matchAll(/line (\d+)\n/g)].map(([, number]) => Number(number));
}

/** Every number from 1 to the last one of `kept` is in what the receivers got. */
function assertAll(received: readonly number[], kept: readonly number[]): void {
  const seen = new Set(received);
  const missing = kept.filter((number) => !seen.has(number));

  assert.ok(kept.length > 0);
  assert.deepEqual(missing, []);
}

async function keptNumbers(id: string): Promise<number[]> {
  return numbersIn((await engine.output(id)).stdout);
}

async function inspect(id: string): Promise<Inspect> {
  return (await engine.get<Inspect>(`/containers/${id}/json`)).body;
}

/** Asks until it is so: the daemon tells nobody when a delivery's state changes. */
async function untilInspect(id: string, isSo: (found: Inspect) => boolean): Promise<Inspect> {
  for (let tries = 0; tries < 1200; tries += 1) {
    const found = await inspect(id);
    if (isSo(found)) return found;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`not in time: ${JSON.stringify(await inspect(id))}`);
}

for (const transport of ['tcp', 'udp'] as const) {
  test(`a ${transport} receiver that was away gets the lines of the meantime, in order`, async () => {
    const port = await freePort();
    const address = { 'syslog-address': `${transport}://127.0.0.1:${port}` };
    const received: number[] = [];
    const take = async (from: number): Promise<void> => {
      if (transport === 'udp') {
        await using receiver = await UdpReceiver.start(port);
        await receiver.until((messages) => numbersIn(messages.join('')).some((number) => number > from));
        received.push(...numbersIn(receiver.messages.join('')));
      } else {
        await using receiver = await StreamReceiver.start({ port });
        await receiver.until((each) => numbersIn(each.received.toString()).some((number) => number > from));
        received.push(...numbersIn(receiver.received.toString()));
      }
    };

    const id = await engine.run(['sh', '-c', COUNTING], withLog('syslog', address));
    await take(20);
    await untilInspect(id, ({ LogDelivery }) => LogDelivery?.Error !== '');
    await take(received.at(-1)! + 100);
    // The loss of unread lines of an ended receiver is known only when more is sent.
    await untilInspect(id, ({ LogDelivery }) => LogDelivery?.Error !== '');
    await engine.post(`/containers/${id}/stop`);
    const kept = await keptNumbers(id);
    await take(kept.length - 1);

    assertAll(received, kept);
    assert.deepEqual((await untilInspect(id, ({ LogDelivery }) => LogDelivery?.Error === '')).LogDelivery, {
      Lost: 0,
      Error: '',
    });
  });
}

test('a daemon that was killed goes on where it was', async () => {
  await using receiver = await StreamReceiver.start();
  const address = { 'syslog-address': `tcp://127.0.0.1:${receiver.port}` };
  const numbers = (): number[] => numbersIn(receiver.received.toString());

  const id = await engine.run(['sh', '-c', COUNTING], withLog('syslog', address));
  for (let kills = 1; kills <= 3; kills += 1) {
    const before = numbers().at(-1) ?? 0;
    await receiver.until(() => (numbers().at(-1) ?? 0) > before + 50);
    await engine.kill();
    await engine.startAgain();
  }
  await engine.post(`/containers/${id}/stop`);
  const kept = await keptNumbers(id);
  await receiver.until(() => numbers().at(-1) === kept.at(-1));

  const found = numbers();
  assertAll(found, kept);
  // Each kill may come between a batch and its checkpoint.
  assert.ok(found.length <= kept.length + 3 * 500, `${found.length} of ${kept.length}`);
});

test('lines that were not delivered when the container and the daemon ended are delivered by the next daemon', async () => {
  const port = await freePort();

  const id = await engine.run(
    ['sh', '-c', 'for n in 1 2 3 4 5; do echo "line $n"; done'],
    withLog('syslog', { 'syslog-address': `tcp://127.0.0.1:${port}` }),
  );
  await engine.wait(id);
  await untilInspect(id, ({ LogDelivery }) => LogDelivery?.Error !== '');
  await engine.kill();
  await using receiver = await StreamReceiver.start({ port });
  await engine.startAgain();

  await receiver.until((each) => numbersIn(each.received.toString()).length === 5);
  assert.deepEqual(numbersIn(receiver.received.toString()), [1, 2, 3, 4, 5]);
});

test('a receiver that never reads holds up neither its container nor others', async () => {
  await using deaf = await StreamReceiver.start({ reads: false });
  await using receiver = await StreamReceiver.start();
  const flood = 'yes 0123456789012345678901234567890123456789 | head -c 30000000; echo "line 1"';

  const stuck = await engine.run(
    ['sh', '-c', flood],
    withLog('syslog', { 'syslog-address': `tcp://127.0.0.1:${deaf.port}` }),
  );
  assert.equal(await engine.wait(stuck), 0);
  await deaf.until(({ connections }) => connections === 1);
  await engine.run(['echo', 'line 2'], withLog('syslog', { 'syslog-address': `tcp://127.0.0.1:${receiver.port}` }));
  await receiver.until((each) => numbersIn(each.received.toString()).includes(2));

  const answer = await engine.get(`/containers/${stuck}/logs?stdout=1&tail=1`);
  assert.match(answer.raw.toString(), /line 1\n$/);
});

test('when the buffer is full the oldest lines go, counted and told', async () => {
  const port = await freePort();
  const options = { 'syslog-address': `tcp://127.0.0.1:${port}`, 'cache-max-size': '20k', 'cache-max-file': '2' };
  const script = 'n=0; while [ $n -lt 2000 ]; do n=$((n+1)); echo "line $n"; done';

  const id = await engine.run(['sh', '-c', script], withLog('syslog', options));
  await engine.wait(id);
  await using receiver = await StreamReceiver.start({ port });
  await receiver.until((each) => numbersIn(each.received.toString()).at(-1) === 2000);
  const { LogDelivery } = await untilInspect(id, ({ LogDelivery: found }) => (found?.Lost ?? 0) > 0);

  const received = numbersIn(receiver.received.toString());
  const lost = 2000 - new Set(received).size;
  assert.deepEqual(LogDelivery, { Lost: lost, Error: '' });
  assert.ok(engine.log.includes(`"lines":${lost}`), 'the log of the daemon says so');
  assert.match(engine.log, /lines of a container are lost: the log buffer was full/);
});

test('a container that is removed at its end still has its lines delivered', async () => {
  await using receiver = await StreamReceiver.start();
  const body = withLog('syslog', { 'syslog-address': `tcp://127.0.0.1:${receiver.port}` });

  for (const number of [1, 2, 3]) {
    const id = await engine.run(['echo', `line ${number}`], body);
    await engine.wait(id);
    await engine.delete(`/containers/${id}`);
  }

  await receiver.until((each) => numbersIn(each.received.toString()).length === 3);
  assert.deepEqual(numbersIn(receiver.received.toString()), [1, 2, 3]);
});

for (const isKilled of [false, true]) {
  const when = isKilled ? 'also by the next daemon' : 'and it does not wait for ever';
  test(`undelivered lines are reported at the removal of a container, ${when}`, async () => {
    const options = { 'syslog-address': `tcp://127.0.0.1:${await freePort()}` };

    const id = await engine.run(['echo', 'line 1'], withLog('syslog', options));
    await engine.wait(id);
    const answer = await engine.delete(`/containers/${id}`);
    if (isKilled) {
      await engine.kill();
      await engine.startAgain();
    }

    assert.equal(answer.status, 204);
    const isTold = (): boolean =>
      engine.log
        .split('\n')
        .some((line) => line.includes(id) && line.includes('lines of a removed container were lost'));
    for (let tries = 0; tries < 1200 && !isTold(); tries += 1) await new Promise((resolve) => setTimeout(resolve, 100));
    assert.ok(isTold());
  });
}

test('the log of a container is read back whatever its driver, unless that is switched off', async () => {
  await using receiver = await StreamReceiver.start();
  const address = { 'syslog-address': `tcp://127.0.0.1:${receiver.port}` };

  const read = await engine.run(['echo', 'hello'], withLog('syslog', address));
  const unread = await engine.run(['echo', 'hello'], withLog('syslog', { ...address, 'cache-disabled': 'true' }));
  await engine.wait(read);
  await engine.wait(unread);
  const refused = await engine.get<{ message: string }>(`/containers/${unread}/logs?stdout=1`);

  assert.equal((await engine.output(read)).stdout, 'hello\n');
  assert.equal((await inspect(read)).LogPath, '');
  assert.equal(refused.body.message, 'configured logging driver does not support reading');
});

test('syslog over TLS is for a receiver with the right certificate only', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'gantry-tls-'));
  const file = (name: string): string => join(folder, name);
  for (const ca of ['right', 'wrong']) {
    const words = `req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=${ca} -addext subjectAltName=IP:127.0.0.1`.split(
      ' ',
    );
    execFileSync('openssl', [...words, '-keyout', file(`${ca}.key`), '-out', file(`${ca}.pem`)], { stdio: 'ignore' });
  }
  const tls = { cert: readFileSync(file('right.pem')), key: readFileSync(file('right.key')) };
  const receiver = await StreamReceiver.start({ tls });
  const options = { 'syslog-address': `tcp+tls://127.0.0.1:${receiver.port}`, 'syslog-format': 'rfc5424' };

  try {
    const trusting = { ...options, 'syslog-tls-ca-cert': file('right.pem') };
    const wary = await engine.run(
      ['echo', 'wrong'],
      withLog('syslog', { ...options, 'syslog-tls-ca-cert': file('wrong.pem') }),
    );
    const { LogDelivery } = await untilInspect(wary, ({ LogDelivery: found }) => found?.Error !== '');
    await engine.run(['echo', 'right'], withLog('syslog', trusting));
    await receiver.until((each) => each.received.includes('right'));
    await engine.run(['echo', 'careless'], withLog('syslog', { ...options, 'syslog-tls-skip-verify': '1' }));
    await receiver.until((each) => each.received.includes('careless'));
    const text = receiver.received.toString();

    assert.match(LogDelivery!.Error, /self-signed certificate/);
    assert.doesNotMatch(text, /wrong/);
    const [, length = '', message = ''] = /^(\d+) (<30>1 [^]*? - right\n)/.exec(text) ?? [];
    assert.equal(Number(length), message.length);
  } finally {
    await receiver[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true });
  }
});
