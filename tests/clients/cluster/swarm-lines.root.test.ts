import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';

import { BothEngines, type Said } from '../both-engines.ts';
import { run, wait } from './lines.ts';
import { CHOSEN, LINES } from './swarm-lines.ts';

suite('the cluster by docker’s command line, beside dockerd', () => {
  let engines: BothEngines;
  let answers: { ours: Said[]; theirs: Said[] };
  before(async () => {
    engines = await BothEngines.start();
    answers = await engines.both(async (side) => {
      const said: Said[] = [];
      for (const line of LINES) said.push(line.startsWith('wait ') ? await wait(side, line) : await run(side, line));
      return said;
    });
  });
  after(async () => await engines[Symbol.asyncDispose]());

  for (const [index, line] of LINES.entries()) {
    const chosen = CHOSEN[line];
    test(`${index}: ${line}${chosen === undefined ? '' : `: ${chosen}`}`, () => {
      const [ours, theirs] = [answers.ours[index], answers.theirs[index]];

      if (chosen === undefined) assert.deepEqual(ours, theirs);
      else assert.notDeepEqual(ours, theirs, 'there is no difference any more');
    });
  }
});
