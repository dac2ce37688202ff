import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';

import Docker from 'dockerode';

import { BothEngines, normalised } from '../both-engines.ts';
import { differences } from '../differences.ts';
import { ROWS } from './dockerode-rows.ts';

suite('dockerode, on our daemon and on dockerd', () => {
  let engines: BothEngines;
  before(async () => {
    engines = await BothEngines.start();
  });
  after(async () => await engines[Symbol.asyncDispose]());

  for (const { name, unversioned, work } of ROWS) {
    test(name, { timeout: 240_000 }, async () => {
      const { ours, theirs } = await engines.both(async (side) => {
        const docker = new Docker({ socketPath: side.socketPath, ...(unversioned !== true && { version: 'v1.24' }) });
        const got = await work(docker);
        assert.notEqual(got, undefined);
        return JSON.parse(normalised(side, JSON.stringify(got))) as unknown;
      });

      assert.deepEqual(differences(ours, theirs), []);
    });
  }
});
