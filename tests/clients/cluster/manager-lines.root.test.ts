import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';

import { BothEngines, COMMAND_LINES, type Said } from '../both-engines.ts';
import { run } from './lines.ts';
import { CHOSEN_MANAGER_LINES, MANAGER_LINES } from './manager-lines.ts';

suite('managers by docker’s command lines, beside dockerd', { concurrency: false }, () => {
  let engines: BothEngines;
  before(async () => {
    engines = await BothEngines.start('1.41');
  });
  after(async () => await engines[Symbol.asyncDispose]());

  for (const program of COMMAND_LINES) {
    suite(program, () => {
      let answers: { ours: Said[]; theirs: Said[] };
      before(async () => {
        answers = await engines.both(async (side) => {
          const said: Said[] = [];
          for (const line of MANAGER_LINES) said.push(await run(side, line, program));
          return said;
        });
      });

      for (const [at, line] of MANAGER_LINES.entries()) {
        const chosen = CHOSEN_MANAGER_LINES[line];
        test(`${at}: ${line}${chosen === undefined ? '' : `: ${chosen}`}`, () => {
          const [ours, theirs] = [answers.ours[at], answers.theirs[at]];

          if (chosen === undefined) assert.deepEqual(ours, theirs);
          else assert.notDeepEqual(ours, theirs, 'there is no difference any more');
        });
      }
    });
  }
});
