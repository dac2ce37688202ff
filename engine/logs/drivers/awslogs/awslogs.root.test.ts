import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import type { Api } from '@gantry/testing/api.ts';
import { busyboxArchive } from '@gantry/testing/busybox-image.ts';
import { Dockerd } from '@gantry/testing/dockerd.ts';
import { CloudWatch, KEY_ID, refusal, SECRET } from '@gantry/testing/receivers/cloudwatch.ts';
import { NO_NETWORK, NO_NETWORK_DOCKERD, OWN_NETNS } from '@gantry/testing/receivers/log-receivers.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

let engine: TestEngine;
let dockerd: Dockerd;

before(async () => {
  // For both daemons.
  process.env['AWS_ACCESS_KEY_ID'] = KEY_ID;
  process.env['AWS_SECRET_ACCESS_KEY'] = SECRET;
  engine = await TestEngine.start({ netns: OWN_NETNS, flags: NO_NETWORK });
  dockerd = await Dockerd.start(NO_NETWORK_DOCKERD, OWN_NETNS);
  await dockerd.api.post('/images/load?quiet=1', await busyboxArchive());
});

after(async () => {
  await engine?.[Symbol.asyncDispose]();
  await dockerd?.[Symbol.asyncDispose]();
});

type Options = Record<string, string>;

function optionsFor(service: CloudWatch, more: Options = {}): Options {
  return {
    'awslogs-group': 'group',
    'awslogs-region': 'eu-west-1',
    'awslogs-endpoint': service.endpoint,
    'awslogs-force-flush-interval-seconds': '1',
    ...more,
  };
}

async function run(api: Pick<Api, 'post'>, script: string, Config: Options): Promise<string> {
  const HostConfig = { NetworkMode: 'none', LogConfig: { Type: 'awslogs', Config } };
  const body = { Image: 'busybox', Cmd: ['sh', '-c', script], HostConfig };
  const { body: created } = await api.post<{ Id: string }>('/containers/create', body);
  const answer = await api.post(`/containers/${created.Id}/start`);
  assert.equal(answer.status, 204, JSON.stringify(answer.body));
  await api.post(`/containers/${created.Id}/wait`);
  return created.Id;
}

const SCRIPT = String.raw`echo one; echo; printf 'a\377b\n'; head -c 70000 /dev/zero | tr '\0' l; echo; printf end`;
const MULTILINE = String.raw`echo 'at first'; echo '[1] one'; echo ' more'; echo; echo '[2] two'; echo ' end'`;
const DATES = String.raw`echo '2026-01-02 03:04:05 one'; echo ' more'; echo '2026-13-02 03:04:05 no date'; echo '2026-01-02 13:04:05 two'`;

const rows: [string, string, Options, number][] = [
  ['lines', SCRIPT, {}, 4],
  ['a stream with a tag', 'echo one; echo two', { tag: 'web/{{.ID}}' }, 2],
  ['a stream with a name', 'echo one; echo two', { 'awslogs-stream': 'mine' }, 2],
  ['several lines with a pattern', MULTILINE, { 'awslogs-multiline-pattern': String.raw`^\[\d\]` }, 3],
  ['several lines with a date', DATES, { 'awslogs-datetime-format': '%Y-%m-%d %H:%M:%S' }, 2],
];
for (const [name, script, options, count] of rows) {
  test(`${name}: the service gets dockerd's requests`, async () => {
    const seen = await Promise.all(
      [dockerd.api, engine].map(async (api) => {
        await using service = await CloudWatch.start();
        service.groups.add('group');
        const id = await run(api, script, optionsFor(service, options));
        await service.until(() => [...service.streams.values()].flat().length >= count);
        return [...service.streams].map(([stream, events]) => [
          stream.replace(id, '<id>').replace(id.slice(0, 12), '<short id>'),
          events.map(({ message }) => message.replaceAll(/l{100,}/g, (long) => `<${long.length} l>`)),
        ]);
      }),
    );

    assert.deepEqual(seen[1], seen[0]);
  });
}

test('the group is made where that is asked for', async () => {
  await using service = await CloudWatch.start();

  const id = await run(engine, 'echo one', optionsFor(service, { 'awslogs-create-group': 'true' }));
  await service.until(() => service.eventsOf(id).length === 1);

  assert.deepEqual(service.actions, ['CreateLogStream', 'CreateLogGroup', 'CreateLogStream', 'PutLogEvents']);
});

test('the sender waits for a missing group', async () => {
  await using service = await CloudWatch.start();

  const id = await run(engine, 'echo one; echo two', optionsFor(service));
  await service.until(() => service.actions.length > 1);
  service.groups.add('group');
  await service.until(() => service.eventsOf(id).length > 0);

  assert.deepEqual(
    service.eventsOf(id).map(({ message }) => message),
    ['one', 'two'],
  );
});

test('a service that counts requests is told the number that it expects', async () => {
  await using service = await CloudWatch.start({ wantsTokens: true });
  service.groups.add('group');
  const stream = { 'awslogs-stream': 'shared' };

  await run(engine, 'echo one', optionsFor(service, stream));
  await service.until(() => service.eventsOf('shared').length === 1);
  await run(engine, 'echo two', optionsFor(service, stream));
  await service.until(() => service.eventsOf('shared').length === 2);
});

test('a service that fails for a while gets every event, and those of a wrong age are counted', async () => {
  await using service = await CloudWatch.start();
  service.groups.add('group');
  let failures = 2;
  service.disturb = (action) => {
    if (action !== 'PutLogEvents' || failures < 0) return undefined;
    failures -= 1;
    if (failures >= 0) return refusal('ThrottlingException', 'slower');
    return { status: 200, body: JSON.stringify({ rejectedLogEventsInfo: { tooOldLogEventEndIndex: 2 } }) };
  };

  const id = await run(engine, 'echo one; echo two; echo three', optionsFor(service));
  await service.until(() => failures < 0);

  for (let tries = 0; tries < 600; tries += 1) {
    const { body } = await engine.get<{ LogDelivery: { Lost: number } }>(`/containers/${id}/json`);
    if (body.LogDelivery.Lost === 2) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  assert.fail('the loss is not told');
});
