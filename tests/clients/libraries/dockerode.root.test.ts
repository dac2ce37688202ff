import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';

import { NEWEST } from '@gantry/engine/http/versions/api-version.ts';
import Docker from 'dockerode';

import { BothEngines, normalised } from '../both-engines.ts';
import { differences } from '../differences.ts';
import { ROWS } from './dockerode-rows.ts';

suite('dockerode, on our daemon and on dockerd', { concurrency: false }, () => {
  let engines: BothEngines;
  before(async () => {
    engines = await BothEngines.start('1.24', NEWEST);
  });
  after(async () => await engines[Symbol.asyncDispose]());

  for (const version of ['v1.24', undefined]) {
    for (const { name, unversioned, work } of ROWS) {
      if (unversioned === true && version !== undefined) continue;
      test(`${name}, ${version ?? 'without a version'}`, { timeout: 240_000 }, async () => {
        const { ours, theirs } = await engines.both(async (side) => {
          const docker = new Docker({ socketPath: side.socketPath, ...(version !== undefined && { version }) });
          const got = await work(docker);
          assert.notEqual(got, undefined);
          return JSON.parse(normalised(side, JSON.stringify(got))) as unknown;
        });

        assert.deepEqual(differences(ours, theirs), []);
      });
    }
  }
});
