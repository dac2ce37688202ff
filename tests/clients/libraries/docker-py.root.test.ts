import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { promisify } from 'node:util';

import { BothEngines, normalised } from '../both-engines.ts';
import { differences } from '../differences.ts';

const execute = promisify(execFile);

/** Debian's, whose docker-py this is; another Python of the machine has its own packages. */
const PYTHON = '/usr/bin/python3';

type Results = Record<string, unknown>;

suite('docker-py, on our daemon and on dockerd', () => {
  let engines: BothEngines;
  let results: { ours: Results; theirs: Results };

  before(async () => {
    engines = await BothEngines.start();
    const program = join(import.meta.dirname, 'docker-py-program.py');
    results = await engines.both(async (side) => {
      const env = { PATH: process.env.PATH, DOCKER_HOST: `unix://${side.socketPath}`, HOME: side.directory };
      const { stdout } = await execute(PYTHON, [program], { env, timeout: 600_000 });
      return JSON.parse(normalised(side, stdout)) as Results;
    });
  });
  after(async () => await engines[Symbol.asyncDispose]());

  for (const scenario of [
    'run_and_remove',
    'a_failing_run',
    'life',
    'execs',
    'logs',
    'attach',
    'archives',
    'stats',
    'refusals',
    'networks_and_volumes',
  ]) {
    test(`${scenario.replaceAll('_', ' ')}: the same from both`, () => {
      const { ours, theirs } = results;

      assert.notEqual(ours[scenario], undefined);
      assert.deepEqual(differences(ours[scenario], theirs[scenario]), []);
    });
  }
});
