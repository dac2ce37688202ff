import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';

import { BothEngines, normalised, type Side } from './both-engines.ts';
import { REPORTS } from './report-scripts.ts';

const TIMEOUT_MS = 300_000;

suite('scripts of public reports print the same with our daemon and with dockerd', { concurrency: false }, () => {
  let engines: BothEngines;
  before(async () => {
    engines = await BothEngines.start();
  });
  after(async () => await engines[Symbol.asyncDispose]());

  for (const [index, [report, about, script]] of REPORTS.entries()) {
    test(`${report}: ${about}`, async () => {
      const { ours, theirs } = await engines.both(async (side) => await outputOf(side, `report-${index}`, script));

      assert.equal(ours, theirs);
    });
  }
});

/** Runs a script in an empty folder of its own, and returns its output and the exit code. */
async function outputOf(side: Side, name: string, script: string): Promise<string> {
  const cwd = join(side.directory, name);
  await mkdir(cwd);
  const env = {
    PATH: process.env['PATH'],
    ...{ D: name, DOCKER_API_VERSION: '1.24', DOCKER_BUILDKIT: '0' },
    DOCKER_HOST: `unix://${side.socketPath}`,
    DOCKER_CONFIG: join(side.directory, 'docker-config'),
  };
  const { promise, resolve } = Promise.withResolvers<string>();
  execFile('bash', ['--norc', '-c', script], { cwd, env, timeout: TIMEOUT_MS }, (error, stdout, stderr) => {
    resolve(normalised(side, `${stdout}${stderr}exit ${error?.code ?? 0}`));
  });
  return await promise;
}
