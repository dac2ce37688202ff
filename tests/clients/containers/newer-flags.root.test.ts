import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';

import { NEWER_JUDGE } from '@gantry/testing/dockerd.ts';

import { BothEngines, docker, type Side } from '../both-engines.ts';
import { differences, isAt } from '../differences.ts';
import { NEWER_FLAGS } from './newer-flags.ts';
import { makeOthers, runRow, type Outcome } from './run-row.ts';

/** By hand beside dockerd 28.5 (see testing/dockerd.ts): then all rows run. */
const VERSION = NEWER_JUDGE === undefined ? '1.41' : '1.51';

/** Fields that dockerd 28 has no more: answers are wide. */
const REMOVED = ['HostConfig.KernelMemory', 'HostConfig.KernelMemoryTCP'];

suite(`newer flags of docker run at ${VERSION}, on our daemon and on dockerd`, () => {
  let engines: BothEngines;
  before(async () => {
    engines = await BothEngines.start(VERSION, '1.55');
    await engines.both(makeOthers);
    await engines.both(makeNetworks);
  });
  after(async () => await engines[Symbol.asyncDispose]());

  for (const [subject, rows] of Object.entries(NEWER_FLAGS)) {
    // Rows of networks look at the next address.
    suite(subject, { concurrency: subject === 'networks' ? false : 4 }, () => {
      for (const [index, row] of rows.entries()) {
        if (Number(row.since.slice(2)) > Number(VERSION.slice(2))) continue;
        const line = [row.command, ...row.flags, ...row.words].join(' ');
        test(`${line}: ${row.chosen === undefined ? 'as with dockerd' : row.chosen.why}`, async () => {
          const name = `${subject}-${index}`;

          const { ours, theirs } = await engines.both(async (side) => plainWords(await runRow(side, name, row)));

          const places = [...REMOVED, ...(row.chosen?.places ?? [])];
          const found = differences(ours, theirs).filter(({ place }) => !places.some((chosen) => isAt(place, chosen)));
          assert.deepEqual(found, []);
        });
      }
    });
  }
});

async function makeNetworks(side: Side): Promise<void> {
  for (const words of [
    '--subnet 10.91.0.0/24 one',
    '--subnet 10.92.0.0/24 --ipv6 --subnet fd00:92::/64 two',
    '--subnet 10.93.0.0/24 --internal internal',
  ]) {
    await docker(side, ['network', 'create', ...words.split(' ')]);
  }
}

/** Without the step of a start that dockerd 28 names before the reason. */
function plainWords(outcome: Outcome): unknown {
  const text = JSON.stringify(outcome)
    .replaceAll(/failed to (create task for container|set up container networking): /g, '')
    .replaceAll(/invalid config for network \w+: invalid endpoint settings:\\n/g, '')
    .replaceAll(/: unknown(?=\\n|")/g, '');
  return JSON.parse(text) as unknown;
}
