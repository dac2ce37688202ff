import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { HttpRecorder } from '@gantry/testing/receivers/http-recorder.ts';
import { NO_NETWORK, OWN_NETNS, StreamReceiver } from '@gantry/testing/receivers/log-receivers.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';
import { decodeMulti, encode } from '@msgpack/msgpack';

let engine: TestEngine;

before(async () => {
  engine = await TestEngine.start({ netns: OWN_NETNS, flags: NO_NETWORK });
});

after(async () => {
  await engine?.[Symbol.asyncDispose]();
});

type Options = Record<string, string>;

async function run(script: string, Type: string, Config: Options): Promise<string> {
  return await engine.run(['sh', '-c', script], { HostConfig: { NetworkMode: 'none', LogConfig: { Type, Config } } });
}

async function lostOf(id: string): Promise<number | undefined> {
  const { body } = await engine.get<{ LogDelivery?: { Lost: number } }>(`/containers/${id}/json`);
  return body.LogDelivery?.Lost;
}

type Forwarded = [string, [unknown, { log: string }][], { chunk: string }];

test('fluentd: a batch that is not acknowledged is sent again', async () => {
  await using receiver = await StreamReceiver.start();
  const forwarded = (): Forwarded[] => [...decodeMulti(receiver.received)] as Forwarded[];
  const options = { 'fluentd-address': `tcp://127.0.0.1:${receiver.port}`, 'fluentd-request-ack': 'true' };

  const id = await run('echo one; echo two', 'fluentd', options);
  await receiver.until(() => receiver.received.length > 0);
  receiver.cut();
  await receiver.until(({ connections }) => connections >= 2 && forwarded().length >= 2);
  receiver.answer(encode({ ack: forwarded().at(-1)![2].chunk }));
  await engine.wait(id);
  await engine.delete(`/containers/${id}`);

  const logs = forwarded().map(([, entries]) => entries.map(([, { log }]) => log).join());
  assert.ok(
    logs.every((text) => 'one,two'.startsWith(text) || text === 'two'),
    logs.join(' '),
  );
  assert.ok(!engine.log.split('\n').some((line) => line.includes(id) && line.includes('were lost')));
});

test('splunk: an event that the collector refuses is left out and counted, the others arrive', async () => {
  const events: string[] = [];
  await using receiver = await HttpRecorder.start(({ method, text }) => {
    if (text.includes('"line":"bad"')) return { status: 400, body: '{"text":"Invalid data format","code":6}' };
    if (method === 'POST') events.push(...[...text.matchAll(/"line":"(\w+)"/g)].map(([, line]) => line!));
    return { status: 200, body: '{}' };
  });
  const options = { 'splunk-url': `http://127.0.0.1:${receiver.port}`, 'splunk-token': 't' };

  const id = await run('for line in a b bad c d bad e; do echo $line; done', 'splunk', options);
  await engine.wait(id);
  await receiver.until(() => events.includes('e'));

  assert.deepEqual(events, ['a', 'b', 'c', 'd', 'e']);
  assert.equal(await lostOf(id), 2);
});

test('splunk: a collector that fails for a while gets everything, once', async () => {
  const events: string[] = [];
  let failures = 3;
  await using receiver = await HttpRecorder.start(({ method, text }) => {
    if (method === 'POST' && failures > 0) {
      failures -= 1;
      return { status: 503, body: '{"text":"Server is busy","code":9}' };
    }
    events.push(...[...text.matchAll(/"line":"(\w+)"/g)].map(([, line]) => line!));
    return { status: 200, body: '{}' };
  });

  await run('echo a; echo b; echo c', 'splunk', {
    'splunk-url': `http://127.0.0.1:${receiver.port}`,
    'splunk-token': 't',
  });
  await receiver.until(() => events.length === 3);

  assert.deepEqual([events, failures], [['a', 'b', 'c'], 0]);
});
