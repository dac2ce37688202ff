import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';

import { sha256, type Settings, TestGateway } from '@gantry/testing/gateway/test-gateway.ts';
import { TestUpstream } from '@gantry/testing/gateway/test-upstream.ts';

const upstream = await TestUpstream.start();
after(async () => await upstream[Symbol.asyncDispose]());

test('a network has a limit of its own, per address or together, and its file is read again', async () => {
  const settings: Settings = {
    upstream: upstream.url,
    networks: [
      { name: 'crawlers', file: '{folder}/crawlers.txt', limit: 3, together: true },
      { name: 'office', ranges: ['127.7.2.0/24', '127.7.3.1'], limit: 500 },
    ],
    identities: { users: { ann: {} }, tokens: [{ sha256: sha256('of-ann'), user: 'ann' }] },
  };
  await using gateway = await TestGateway.start({ upstream: upstream.url });
  writeFileSync(join(gateway.folder, 'crawlers.txt'), '# of a cloud\n127.7.1.0/24 # a remark\n\n');
  await gateway.reload(settings);
  const limitOf = async (from: string): Promise<string | undefined> => {
    return (await gateway.request('/user', { from })).headers['x-ratelimit-limit'];
  };

  const together: number[] = [];
  for (const last of [1, 2, 3, 4]) together.push((await gateway.request('/user', { from: `127.7.1.${last}` })).status);
  const known = await gateway.request('/user', { from: '127.7.1.1', token: 'of-ann' });
  const { output } = await gateway.cli('explain');
  const limits = [await limitOf('127.7.2.9'), await limitOf('127.7.3.1'), await limitOf('127.7.3.2')];
  writeFileSync(join(gateway.folder, 'crawlers.txt'), '127.7.9.0/24\n');
  await gateway.reload(settings);
  const moved = [await limitOf('127.7.1.1'), await limitOf('127.7.9.1')];

  assert.deepEqual(together, [200, 200, 200, 403]);
  assert.equal(known.status, 200);
  assert.match(output, /^network:crawlers +primary +core/m);
  assert.deepEqual(limits, ['500', '500', '60']);
  assert.deepEqual(moved, ['60', '3']);
});

test('a list that cannot be read leaves the old one in force', async () => {
  const settings: Settings = { upstream: upstream.url, networks: [{ name: 'one', ranges: ['127.7.4.1'], limit: 7 }] };
  await using gateway = await TestGateway.start(settings);

  const line = await gateway.reload({
    ...settings,
    networks: [
      { name: 'one', ranges: ['127.7.4.0/40'] },
      { name: 'one', file: '/nowhere' },
    ],
  });
  const { headers } = await gateway.request('/user', { from: '127.7.4.1' });

  const problems = String(line['problems']);
  for (const part of [
    'networks.0: an address or CIDR range',
    'networks.1.file: /nowhere: no such file or directory',
    'networks.1.name: another',
  ]) {
    assert.ok(problems.includes(part), problems);
  }
  assert.equal(headers['x-ratelimit-limit'], '7');
});
