import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';

import { BothEngines, normalised } from './both-engines.ts';
import { NEWER_ROWS } from './newer-rows.ts';

suite('clients of version 1.41', { concurrency: false }, () => {
  let engines: BothEngines;
  before(async () => {
    engines = await BothEngines.start('1.41');
  });
  after(async () => await engines[Symbol.asyncDispose]());

  for (const { title, work, differs } of NEWER_ROWS) {
    const remark = differs === undefined ? '' : `, but for ${differs.why}`;
    test(`${title}: as dockerd${remark}`, async () => {
      const { ours, theirs } = await engines.both(async (side) => normalised(side, JSON.stringify(await work(side))));

      const said = JSON.parse(ours) as unknown;
      if (differs === undefined) assert.deepEqual(said, JSON.parse(theirs));
      else {
        assert.deepEqual(said, differs.ours);
        assert.notDeepEqual(JSON.parse(theirs), differs.ours);
      }
    });
  }
});
