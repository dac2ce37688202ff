import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { promisify } from 'node:util';

import { NEWEST } from '@gantry/engine/http/versions/api-version.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

const execute = promisify(execFile);

/** Results of each scenario of `testcontainers-program.ts`; those of dockerd 20.10 are the same. */
const EXPECTED: Readonly<Record<string, unknown>> = {
  'waits for a line of the log': 'ready',
  'waits for ports': 'served\n',
  'waits for an answer': 'served\n',
  'waits for health': 0,
  'waits for a command': 0,
  'waits for an end': 'once',
  'copies in before the start and while it runs': '640\nof a textof a fileof a filelater',
  'copies out, running and stopped': {
    running: ['made: made\n'],
    after: ['made: made\n'],
  },
  'runs commands: output, code, environment, user, folder': {
    words: ['', '/tmp', 'daemon', 'of the container of the command', 'wrong'],
    stdout: 'of the container of the command\ndaemon\n/tmp\n',
    stderr: 'wrong\n',
    exitCode: 6,
  },
  'restarts, and ports are found again': ['served\n', 'served\n'],
  'hears the log while it is written': ['first', 'second'],
  'two in a network know each other by alias': 'served\n',
  'aliases are those of one network, also after a restart': [
    ['served\n', 'served\n', 'served\n'],
    ['served\n', 'served\n', 'served\n'],
    1,
    true,
  ],
  'limits, tmpfs, labels, a name of its host': ['named\n65536\n', 'limited', 'named'],
  'says that a container ended instead of becoming ready': 'Error: Log stream ended and message "yes" was not received',
};

/** The library names no version: it gets the newest. */
suite('testcontainers, against our daemon', { concurrency: 2 }, () => {
  for (const newest of ['1.24', NEWEST]) suiteAt(newest);
});

function suiteAt(newest: string): void {
  suite(`with the newest version ${newest}`, { concurrency: false }, () => {
    let engine: TestEngine;
    let results: Record<string, unknown>;

    before(async () => {
      engine = await TestEngine.start({ flags: [`--max-api-version=${newest}`] });
      const env = {
        PATH: process.env.PATH,
        DOCKER_HOST: `unix://${engine.socketPath}`,
        TESTCONTAINERS_HOST_OVERRIDE: '127.0.0.1', // of the namespace in which the ports are published
        TESTCONTAINERS_RYUK_DISABLED: 'true', // its image comes from a registry
        HOME: engine.directory,
      };
      const program = join(import.meta.dirname, 'testcontainers-program.ts');
      const words = [`--net=${join(engine.directory, 'netns')}`, process.execPath, program];
      const { stdout } = await execute('nsenter', words, { env, timeout: 600_000 });
      results = JSON.parse(stdout.trim().split('\n').at(-1)!) as typeof results;
    });
    after(async () => await engine[Symbol.asyncDispose]());

    test('every scenario is in the table', () => assert.deepEqual(Object.keys(results), Object.keys(EXPECTED)));

    for (const [name, expected] of Object.entries(EXPECTED)) {
      test(name, () => assert.deepEqual(results[name], expected));
    }
  });
}
