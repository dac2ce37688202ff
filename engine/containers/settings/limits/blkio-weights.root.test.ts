import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

import { TestEngine } from '@gantry/testing/test-engine.ts';

import { blkioWeights } from '../../../host/cgroups/blkio-weights.ts';
import { detectCgroups } from '../../../host/cgroups/cgroups.ts';
import type { Inspect } from '../../schema.ts';

const cgroups = detectCgroups();

test('a weight of block devices is that of the cgroup, with each runtime, or it is warned of', async () => {
  await using engine = await TestEngine.start();

  for (const Runtime of ['runc', 'crun']) {
    const body = { Image: 'busybox', Cmd: ['sleep', '1000'], HostConfig: { BlkioWeight: 300, Runtime } };
    const made = await engine.post<{ Id: string; Warnings: string[] }>('/containers/create', body);
    const { Id, Warnings } = made.body;
    const { HostConfig } = (await engine.get<Inspect>(`/containers/${Id}/json`)).body;

    const started = await engine.post(`/containers/${Id}/start`);

    assert.equal(started.status, 204, started.raw.toString());
    assert.equal(Warnings.length === 0, HostConfig.BlkioWeight === 300);
    if (blkioWeights(cgroups) !== 'bfq') continue;
    const file = join(cgroups.controllers.get('blkio')!, '/docker', Id, 'blkio.bfq.weight');
    assert.equal(readFileSync(file, 'utf8').trim(), '300');
    assert.equal((await engine.post(`/containers/${Id}/update`, { BlkioWeight: 400 })).status, 200);
    assert.equal(readFileSync(file, 'utf8').trim(), '400');
  }
});
