import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { promisify } from 'node:util';

import { TestEngine } from '@gantry/testing/test-engine.ts';

const execute = promisify(execFile);
/** The command line of the package of the judge. */
const OLDER = '/usr/bin/docker';
const FILE = `ARG BASE=busybox
FROM $BASE AS base
ARG GIVEN
COPY . /in
RUN echo $GIVEN > /said; ls /in >> /said; ulimit -n >> /said; grep -c 10.1.2.3 /etc/hosts >> /said; df /dev/shm | awk 'END {print $2}' >> /said
CMD cat /said
FROM base
RUN exit 1
`;

suite("the classic builder of docker's command lines", { concurrency: false }, () => {
  const folder = mkdtempSync(join(tmpdir(), 'gantry-classic-'));
  let engine: TestEngine;
  before(async () => {
    engine = await TestEngine.start({ flags: ['--bridge=none', '--max-api-version=1.40'] });
    mkdirSync(join(folder, 'web'));
    writeFileSync(join(folder, 'web/other.Dockerfile'), FILE);
    writeFileSync(join(folder, 'web/.dockerignore'), 'ignored*\n*Dockerfile\n.dockerignore\n');
    for (const name of ['kept', 'ignored']) writeFileSync(join(folder, 'web', name), name);
    writeFileSync(join(folder, 'Dockerfile'), 'FROM busybox\nCMD echo plain\n');
  });
  after(async () => {
    await engine[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true });
  });

  const run = async (command: string, words: readonly string[], input = '', version = '1.24'): Promise<string> => {
    const env = {
      PATH: process.env.PATH,
      DOCKER_API_VERSION: version,
      DOCKER_HOST: `unix://${engine.socketPath}`,
      DOCKER_CONFIG: join(folder, 'config'),
      DOCKER_BUILDKIT: '0',
    };
    const running = execute(command, words, { cwd: folder, env });
    running.child.stdin!.end(input);
    return (await running).stdout;
  };

  test('one of them is 20.10', async () => {
    assert.match(await run(OLDER, ['version', '--format', '{{.Client.Version}}']), /^20\.10\./);
  });

  for (const command of ['docker', OLDER]) {
    test(`${command} builds a folder without any option, and runs the image`, async () => {
      const built = await run(command, ['build', '-t', 'plain', '--force-rm', '.']);

      assert.match(built, /Successfully tagged plain:latest/);
      assert.equal(await run(command, ['run', '--rm', '--network=none', 'plain']), 'plain\n');
    });

    test(`${command} builds a Dockerfile from its stdin`, async () => {
      const id = await run(command, ['build', '-q', '-'], 'FROM busybox\nLABEL from=stdin\n');

      assert.match(id, /^sha256:[0-9a-f]{64}\n$/);
    });

    test(`${command} builds with its options`, async () => {
      const options = [
        ...['-f', 'web/other.Dockerfile', '--target=base', '--build-arg=GIVEN=arg', '--build-arg=BASE=plain'],
        ...['--ulimit=nofile=77:77', '--add-host=extra:10.1.2.3', '--shm-size=4m', '--network=none', '--no-cache'],
        ...['--label=of=cli', '--cache-from=plain', '--memory=64m', '--cpuset-cpus=0', '-t=rich:1', '-t=rich:2'],
      ];

      const built = await run(command, ['build', ...options, 'web'], '', '1.40');

      assert.match(built, /Successfully tagged rich:1\nSuccessfully tagged rich:2/);
      assert.equal(await run(command, ['run', '--rm', '--network=none', 'rich:2']), 'arg\nkept\n77\n1\n4096\n');
      assert.equal(await run(command, ['inspect', '--format', '{{.Config.Labels.of}}', 'rich:1']), 'cli\n');
    });
  }
});
