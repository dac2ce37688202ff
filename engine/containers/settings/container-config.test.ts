import assert from 'node:assert/strict';
import { test } from 'node:test';

import type { ImageConfig } from '../../images/configuration/image-config.ts';
import type { ContainerConfigBody } from './container-config-schema.ts';
import { checkAgainstModes, commandOf, completeConfig } from './container-config.ts';

const id = 'ab'.repeat(32);
const image: ImageConfig = {
  User: 'app',
  ExposedPorts: { '80/tcp': {} },
  Env: ['PATH=/bin', 'MODE=image'],
  Cmd: ['serve'],
  Entrypoint: ['/entry'],
  Volumes: { '/data': {} },
  WorkingDir: '/srv',
  OnBuild: [],
  Labels: { from: 'image', both: 'image' },
  StopSignal: 'SIGQUIT',
  Shell: [],
  Healthcheck: { Test: ['CMD', 'true'], Interval: 5_000_000_000 },
};

const complete = (body: ContainerConfigBody) => completeConfig(id, body, image, '');

test('an empty body takes everything from the image', () => {
  const config = complete({});

  assert.deepEqual(commandOf(config), { path: '/entry', args: ['serve'] });
  assert.equal(config.User, 'app');
  assert.equal(config.WorkingDir, '/srv');
  assert.equal(config.StopSignal, 'SIGQUIT');
  assert.equal(config.Hostname, 'abababababab');
  assert.deepEqual(config.Volumes, { '/data': {} });
  assert.deepEqual(config.ExposedPorts, { '80/tcp': {} });
});

test("the body's variables and labels win over the image's", () => {
  const config = complete({ Env: ['MODE=body', 'NEW=1'], Labels: { both: 'body' } });

  assert.deepEqual(new Set(config.Env), new Set(['MODE=body', 'NEW=1', 'PATH=/bin']));
  assert.deepEqual(config.Labels, { from: 'image', both: 'body' });
});

test("a new command keeps the image's entrypoint", () => {
  assert.deepEqual(commandOf(complete({ Cmd: 'other' })), { path: '/entry', args: ['other'] });
});

test("a new entrypoint takes the image's command away", () => {
  assert.deepEqual(commandOf(complete({ Entrypoint: ['/mine'] })), { path: '/mine', args: [] });
});

test('an empty entrypoint leaves the command alone', () => {
  assert.deepEqual(commandOf(complete({ Entrypoint: [''], Cmd: ['ls'] })), { path: 'ls', args: [] });
});

test('a host name may have underscores, as many compose files write them', () => {
  assert.equal(complete({ Hostname: 'under_score.lan' }).Hostname, 'under_score.lan');
});

test('a health check takes its missing fields from the image', () => {
  const { Healthcheck } = complete({ Healthcheck: { Test: ['CMD', 'false'], Interval: 0 } });

  assert.deepEqual(Healthcheck, { Test: ['CMD', 'false'], Interval: 5_000_000_000 });
});

const refused: [ContainerConfigBody, RegExp][] = [
  [{ Hostname: 'two words' }, /invalid hostname/],
  [{ Hostname: '-bad' }, /invalid hostname/],
  [{ MacAddress: '02:42' }, /mac address/],
  [{ Env: ['=x'] }, /invalid environment variable/],
  [{ WorkingDir: 'relative' }, /absolute path/],
  [{ Volumes: { data: {} } }, /must be absolute/],
  [{ ExposedPorts: { 'x/tcp': {} } }, /invalid port/],
  [{ StopSignal: 'SIGNONE' }, /Invalid signal/],
  [{ Healthcheck: { Interval: 999_999 } }, /less than 1ms/],
  [{ Healthcheck: { Retries: -1 } }, /negative/],
];

for (const [body, message] of refused) {
  test(`${JSON.stringify(body)} is refused`, () => {
    assert.throws(() => complete(body), { kind: 'invalid', message });
  });
}

test('a container without any command is refused', () => {
  const config = completeConfig(id, {}, { ...image, Cmd: [], Entrypoint: [] }, '');

  assert.throws(() => commandOf(config), { kind: 'invalid', message: /No command specified/ });
});

test('settings of a namespace that is shared are refused', () => {
  const refused: [body: ContainerConfigBody, networkMode: string, utsMode: string, message: string][] = [
    [{ Hostname: 'box' }, 'bridge', 'host', 'conflicting options: hostname and the UTS mode'],
    [{ Hostname: 'box' }, 'container:x', '', 'conflicting options: hostname and the network mode'],
    [{ MacAddress: '02:42:ac:11:65:43' }, 'container:x', '', 'conflicting options: mac-address and the network mode'],
    [{ MacAddress: '02:42:ac:11:65:43' }, 'host', '', 'conflicting options: mac-address and the network mode'],
    [
      { ExposedPorts: { '80/tcp': {} } },
      'container:x',
      '',
      'conflicting options: port exposing and the container type network mode',
    ],
  ];
  for (const [body, networkMode, utsMode, message] of refused) {
    assert.throws(() => checkAgainstModes(body, networkMode, utsMode), { kind: 'invalid', message });
  }
  checkAgainstModes({ Hostname: 'box', ExposedPorts: { '80/tcp': {} } }, 'host', '');
});
