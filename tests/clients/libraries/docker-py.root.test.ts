import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { promisify } from 'node:util';

import { NEWEST } from '@gantry/engine/http/versions/api-version.ts';

import { BothEngines, normalised } from '../both-engines.ts';
import { differences } from '../differences.ts';

const execute = promisify(execFile);

/** Debian's, whose docker-py this is; another Python of the machine has its own packages. */
const PYTHON = '/usr/bin/python3';

type Results = Record<string, unknown>;

/** `auto` is the engine's newest version. */
const VERSIONS = ['1.24', 'auto'] as const;

suite('docker-py, on our daemon and on dockerd', { concurrency: false }, () => {
  let engines: BothEngines;
  const results = new Map<string, { ours: Results; theirs: Results }>();

  before(async () => {
    engines = await BothEngines.start('1.24', NEWEST);
    const program = join(import.meta.dirname, 'docker-py-program.py');
    for (const version of VERSIONS) {
      const answers = await engines.both(async (side) => {
        const env = { PATH: process.env.PATH, DOCKER_HOST: `unix://${side.socketPath}`, HOME: side.directory };
        const { stdout } = await execute(PYTHON, [program, version], { env, timeout: 600_000 });
        return JSON.parse(normalised(side, stdout)) as Results;
      });
      results.set(version, answers);
    }
  });
  after(async () => await engines[Symbol.asyncDispose]());

  for (const version of VERSIONS) {
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
      test(`${scenario.replaceAll('_', ' ')} at ${version}: the same from both`, () => {
        const { ours, theirs } = results.get(version)!;

        assert.notEqual(ours[scenario], undefined);
        assert.deepEqual(differences(ours[scenario], theirs[scenario]), []);
      });
    }
  }
});
