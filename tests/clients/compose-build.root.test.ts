import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';

import { TestEngine } from '@gantry/testing/test-engine.ts';

const execute = promisify(execFile);

const PROJECT = `version: "2.4"
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
  rich:
    build:
      context: ./rich
      target: wanted
      labels: {of: compose, n: "7"}
      cache_from: [composed:1]
      args: [GIVEN=one, FROM_ENVIRONMENT]
      network: none
      shm_size: 4m
      extra_hosts: ["extra:10.1.2.3"]
    image: rich:1
    network_mode: none
`;
const RICH = `FROM busybox AS base
ARG GIVEN
ARG FROM_ENVIRONMENT
ARG KEPT=default
FROM base AS wanted
ARG GIVEN
ARG FROM_ENVIRONMENT
RUN echo $GIVEN $FROM_ENVIRONMENT $KEPT > /said; ls /sys/class/net >> /said; grep extra /etc/hosts >> /said; df /dev/shm | awk 'END {print $2}' >> /said
CMD cat /said
FROM wanted AS unwanted
RUN exit 1
`;

test('docker-compose 1.29 builds services, and runs the images', async () => {
  await using engine = await TestEngine.start({ flags: ['--bridge=none', '--max-api-version=1.29'] });
  await using folder = new AsyncDisposableStack();
  const path = folder.adopt(mkdtempSync(join(tmpdir(), 'gantry-compose-')), (each) =>
    rmSync(each, { recursive: true }),
  );
  for (const name of ['web', 'plain', 'rich']) mkdirSync(join(path, name));
  writeFileSync(join(path, 'docker-compose.yml'), PROJECT);
  writeFileSync(
    join(path, 'web/other.Dockerfile'),
    'FROM busybox AS first\nCOPY greeting ignored* /in/\nFROM scratch AS unneeded\nCOPY nothing /\nFROM busybox AS last\nARG WHO\nCOPY --from=first /in /in\nENV WHO=$WHO\nCMD echo $(cat /in/greeting) $WHO $(ls /in)\n',
  );
  writeFileSync(join(path, 'web/greeting'), 'hello\n');
  writeFileSync(join(path, 'web/ignored.txt'), 'no\n');
  writeFileSync(join(path, 'web/.dockerignore'), 'ignored*\n');
  writeFileSync(join(path, 'plain/Dockerfile'), 'FROM busybox\nCMD ["true"]\n');
  writeFileSync(join(path, 'rich/Dockerfile'), RICH);
  const composeAt = async (version: string, ...words: string[]): Promise<string> => {
    const env = {
      PATH: process.env.PATH,
      HOME: path,
      DOCKER_HOST: `unix://${engine.socketPath}`,
      COMPOSE_API_VERSION: version,
      FROM_ENVIRONMENT: 'two',
      COMPOSE_DOCKER_CLI_BUILD: '0', // docker's own command wants an id that is told from 1.30 on
    };
    const { stdout, stderr } = await execute('docker-compose', ['--no-ansi', '-p', 'project', ...words], {
      cwd: path,
      env,
    });
    return stdout + stderr;
  };
  const compose = async (...words: string[]): Promise<string> => await composeAt('1.24', ...words);

  const built = await compose('build', '--force-rm', 'web', 'plain');
  const again = await compose('build', 'web', 'plain');
  const ran = await compose('run', '--rm', '-T', 'web');

  assert.match(
    built,
    /Successfully tagged composed:1[^]*Successfully tagged project_plain:latest|project_plain:latest[^]*composed:1/,
  );
  assert.match(again, /Using cache/);
  assert.match(ran, /hello compose greeting\n/);
  // Its library refuses `target` and others for an older engine, before it asks it.
  assert.match(
    await composeAt('1.29', 'build', 'rich'),
    /Step 7\/7 : CMD cat \/said|Step 8\/8|Successfully tagged rich:1/,
  );
  assert.match(await compose('run', '--rm', '-T', 'rich'), /^one two\nlo\n10\.1\.2\.3\s+extra\n4096\n/m);
  const { Config } = (await engine.get<{ Config: { Labels: object } }>('/images/rich:1/json')).body;
  assert.deepEqual(Config.Labels, { of: 'compose', n: '7' });
  await compose('down', '--rmi', 'all');
  assert.equal((await engine.get('/images/composed:1/json')).status, 404);
});
