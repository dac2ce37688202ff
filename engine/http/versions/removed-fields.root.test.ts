import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';

import { TestEngine } from '@gantry/testing/test-engine.ts';

import { NEWEST } from './api-version.ts';

/** Fields that dockerd 25 to 29 have removed from an answer, by their paths. */
const REMOVED: readonly (readonly [path: string, fields: readonly string[]])[] = [
  [
    '/containers/box/json',
    [
      ...['IPAddress', 'IPPrefixLen', 'Gateway', 'MacAddress', 'EndpointID', 'GlobalIPv6Address', 'Bridge'],
      ...['GlobalIPv6PrefixLen', 'IPv6Gateway', 'HairpinMode', 'LinkLocalIPv6Address', 'LinkLocalIPv6PrefixLen'],
      ...['SecondaryIPAddresses', 'SecondaryIPv6Addresses'],
    ].map((field) => `NetworkSettings.${field}`),
  ],
  ['/containers/box/json', ['HostConfig.KernelMemoryTCP', 'Config.OnBuild', 'GraphDriver.Name']],
  ['/images/busybox/json', ['VirtualSize', 'Container', 'ContainerConfig', 'Parent', 'DockerVersion', 'Comment']],
  ['/images/busybox/json', ['Author', 'Config.Hostname', 'Config.AttachStdin', 'Config.OnBuild', 'Config.Volumes']],
  ['/images/json', ['0.VirtualSize']],
  ['/info', ['KernelMemoryTCP', 'BridgeNfIptables', 'BridgeNfIp6tables', 'RuncCommit.Expected', 'InitCommit.Expected']],
  ['/info', ['ContainerdCommit.Expected', 'RegistryConfig.InsecureRegistryCIDRs']],
];

suite('fields that newer versions removed', { concurrency: false }, () => {
  let engine: TestEngine;
  before(async () => {
    engine = await TestEngine.start({ version: NEWEST });
    await engine.run(['sleep', '1000'], {}, 'box');
  });
  after(async () => await engine[Symbol.asyncDispose]());

  for (const [path, fields] of REMOVED) {
    test(`GET ${path} at ${NEWEST}: ${fields.join(', ')} stay`, async () => {
      const { body } = await engine.get<object>(path);

      assert.deepEqual(
        fields.filter((field) => !has(body, field.split('.'))),
        [],
      );
    });
  }

  test('GET /info has no NRI, and lines of a log are no JSON', async () => {
    const headers = { Accept: 'application/jsonl' };
    await engine.run(['echo', 'hello'], { Tty: true }, 'told');
    await engine.wait('told');

    const { body } = await engine.get<object>('/info');
    const { raw } = await engine.request('GET', '/containers/told/logs?stdout=1&format=json', { headers });

    assert.equal('NRI' in body, false);
    assert.equal(raw.toString(), 'hello\r\n');
  });
});

function has(value: unknown, [name, ...rest]: readonly string[]): boolean {
  if (name === undefined) return true;
  const fields = new Map<string, unknown>(Object.entries(value ?? {}));
  return fields.has(name) && has(fields.get(name), rest);
}
