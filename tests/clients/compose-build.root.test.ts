import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';

import { TestEngine } from '@gantry/testing/test-engine.ts';

const execute = promisify(execFile);

const PROJECT = `version: "2.1"
services:
  web:
    build:
      context: ./web
      dockerfile: other.Dockerfile
      args: {WHO: compose}
    image: composed:1
    network_mode: none
  plain:
    build: ./plain
    network_mode: none
`;

test('docker-compose 1.29 builds services, and runs what it built', async () => {
  await using engine = await TestEngine.start({ flags: ['--bridge=none'] });
  await using folder = new AsyncDisposableStack();
  const path = folder.adopt(mkdtempSync(join(tmpdir(), 'gantry-compose-')), (each) =>
    rmSync(each, { recursive: true }),
  );
  for (const name of ['web', 'plain']) mkdirSync(join(path, name));
  writeFileSync(join(path, 'docker-compose.yml'), PROJECT);
  writeFileSync(
    join(path, 'web/other.Dockerfile'),
    'FROM busybox AS first\nCOPY greeting ignored* /in/\nFROM scratch AS unneeded\nCOPY nothing /\nFROM busybox AS last\nARG WHO\nCOPY --from=first /in /in\nENV WHO=$WHO\nCMD echo $(cat /in/greeting) $WHO $(ls /in)\n',
  );
  writeFileSync(join(path, 'web/greeting'), 'hello\n');
  writeFileSync(join(path, 'web/ignored.txt'), 'no\n');
  writeFileSync(join(path, 'web/.dockerignore'), 'ignored*\n');
  writeFileSync(join(path, 'plain/Dockerfile'), 'FROM busybox\nCMD ["true"]\n');
  const compose = async (...words: string[]): Promise<string> => {
    const env = {
      PATH: process.env.PATH,
      HOME: path,
      DOCKER_HOST: `unix://${engine.socketPath}`,
      COMPOSE_API_VERSION: '1.24',
      COMPOSE_DOCKER_CLI_BUILD: '0', // docker's own command wants an id that is told from 1.30 on
    };
    const { stdout, stderr } = await execute('docker-compose', ['--no-ansi', '-p', 'project', ...words], {
      cwd: path,
      env,
    });
    return stdout + stderr;
  };

  const built = await compose('build', '--force-rm');
  const again = await compose('build');
  const ran = await compose('run', '--rm', '-T', 'web');

  assert.match(
    built,
    /Successfully tagged composed:1[^]*Successfully tagged project_plain:latest|project_plain:latest[^]*composed:1/,
  );
  assert.match(again, /Using cache/);
  assert.match(ran, /hello compose greeting\n/);
  await compose('down', '--rmi', 'all');
  assert.equal((await engine.get('/images/composed:1/json')).status, 404);
});
