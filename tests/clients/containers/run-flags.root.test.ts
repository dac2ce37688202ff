import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';

import { BothEngines } from '../both-engines.ts';
import { differences, isAt } from '../differences.ts';
import { runFlags } from './run-flags.ts';
import { makeOthers, runRow } from './run-row.ts';

suite('the flags of docker run, on our daemon and on dockerd', () => {
  let engines: BothEngines;
  before(async () => {
    engines = await BothEngines.start();
    await engines.both(makeOthers);
  });
  after(async () => await engines[Symbol.asyncDispose]());

  for (const [subject, rows] of Object.entries(runFlags)) {
    suite(subject, { concurrency: 4 }, () => {
      for (const [index, row] of rows.entries()) {
        const line = [row.command, ...row.flags, ...row.words].join(' ');
        const what = row.chosen === undefined ? 'as with dockerd' : `differs from dockerd: ${row.chosen.why}`;
        test(`${line}: ${what}`, async () => {
          const name = `${subject.split(/\W/)[0]}-${index}`;

          const { ours, theirs } = await engines.both(async (side) => await runRow(side, name, row));

          const found = differences(ours, theirs);
          const { places = [] } = row.chosen ?? {};
          const open = found.filter(({ place }) => !places.some((chosen) => isAt(place, chosen)));
          assert.deepEqual(open, []);
          assert.ok(row.chosen === undefined || found.length > 0, 'there is no difference any more');
        });
      }
    });
  }
});
