import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { promisify } from 'node:util';

import { NEWEST } from '@gantry/engine/http/versions/api-version.ts';
import { newerClients } from '@gantry/testing/clients/newer-clients.ts';
import { Registries } from '@gantry/testing/registries/registries.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

const execute = promisify(execFile);

type Row = readonly [words: string, output: RegExp];

/** Commands one after the other; `{dir}` is a folder with a project, `{soon}` the second after the next. */
const LINES: readonly Row[] = [
  ['version', /Server: Gantry\n Engine:\n[^]*API version: +1\.\d+ \(minimum version 1\.12\)/],
  ['info', /Server Version: [^]*Swarm: inactive/],
  ['run --rm --init busybox echo hello', /^hello\n$/],
  ['run --rm --mount type=tmpfs,dst=/t --read-only busybox sh -c', /^$/],
  ['run -d --name one --rm -v made:/v -p 127.0.0.1:8095:80 busybox sleep 1000', /^[0-9a-f]{64}\n$/],
  ['ps', /127\.0\.0\.1:8095->80\/tcp +one\n$/],
  ['exec -e A=b -w /tmp one pwd', /^\/tmp\n$/],
  ['stats --no-stream', /one/],
  ['cp one:/etc/passwd -', /root:x:0:0/],
  ['stop -t 0 one', /^one\n$/],
  ['build -q -t built {dir}', /^sha256:[0-9a-f]{64}\n$/],
  ['run --rm built', /^made\n$/],
  ['tag built 127.0.0.1:5000/a/built:1', /^$/],
  ['push 127.0.0.1:5000/a/built:1', /1: digest: sha256:[0-9a-f]{64} size: \d+/],
  ['rmi 127.0.0.1:5000/a/built:1', /Untagged: 127\.0\.0\.1:5000\/a\/built:1/],
  ['pull 127.0.0.1:5000/a/built:1', /Status: Downloaded newer image/],
  ['run --name ended built', /^made\n$/],
  ['commit ended kept', /^sha256:/],
  ['network create near', /^[0-9a-f]{64}\n$/],
  ['run --rm --network near --network-alias here busybox nslookup here', /Address: +172\./],
  [
    'events --since 10m --until {soon} --filter type=image --filter event=push',
    /image push 127\.0\.0\.1:5000\/a\/built/,
  ],
  ['system df', /Images +3 [^]*Local Volumes +1 /],
  ['system df -v', /VOLUME NAME[^]*made/],
  ['volume rm made', /^made\n$/],
  ['system prune -a -f', /Deleted Networks:\nnear\n[^]*Total reclaimed space: /],
  ['images -q', /^$/],
];

const PROJECT = `version: "2.4"
services:
  web:
    build: .
    command: httpd -f -p 80 -h /www
    stop_signal: SIGKILL
    healthcheck: {test: "wget -q -O /dev/null http://127.0.0.1/", interval: 200ms, timeout: 30s, retries: 50}
  job:
    image: busybox
    command: sh -c "wget -q -O - http://web/ > /data/got; exec sleep 1000"
    stop_signal: SIGKILL
    depends_on: {web: {condition: service_healthy}}
    volumes: ["data:/data"]
volumes: {data: {}}
`;

const PROJECT_LINES: readonly Row[] = [
  ['up -d', /^/],
  ['exec -T job sh -c', /^made\n$/],
  ['up -d --scale job=2', /^/],
  ['ps', /job.1[^]*job.2[^]*web.1/],
  ['up -d --scale job=1', /^/],
  ['restart', /^/],
  ['down -v', /^/],
];

/** Undefined where they could not be fetched, which `./gantry test` says. */
const newer = newerClients();

/** Docker's command lines: 28 on the PATH, and 20.10 of the judge's package; compose 1.29. */
const COMMAND_LINES = ['docker', '/usr/bin/docker', ...(newer === undefined ? [] : [newer.docker])];
const COMPOSES = [['docker-compose'], ...(newer === undefined ? [] : [[newer.docker, 'compose']])];

suite('clients with nothing set, on a daemon with the newest version', { concurrency: false }, () => {
  let engine: TestEngine;
  let registries: Registries;
  let folder: string;

  before(async () => {
    engine = await TestEngine.start({ version: NEWEST });
    registries = await Registries.start(engine.netns);
    await registries.registry(5000);
    folder = await mkdtemp(join(tmpdir(), 'newest-'));
    await mkdir(join(folder, 'project'));
    await writeFile(
      join(folder, 'project', 'Dockerfile'),
      'FROM busybox\nRUN mkdir /www; echo made > /www/index.html\nCMD cat /www/index.html\n',
    );
    await writeFile(join(folder, 'project', 'docker-compose.yml'), PROJECT);
    const config = { auths: {}, cliPluginsExtraDirs: newer === undefined ? [] : [newer.plugins] };
    await writeFile(join(folder, 'config.json'), JSON.stringify(config));
  });
  after(async () => {
    await registries[Symbol.asyncDispose]();
    await engine[Symbol.asyncDispose]();
    await rm(folder, { recursive: true });
  });

  /** Its output; of a compose also what it reports. */
  async function said(command: readonly string[], directory = folder): Promise<string> {
    const env = {
      PATH: process.env.PATH,
      HOME: folder,
      DOCKER_HOST: `unix://${engine.socketPath}`,
      DOCKER_CONFIG: folder,
      DOCKER_BUILDKIT: '0',
    };
    const [program = '', ...words] = command;
    const running = execute(program, words, { env, cwd: directory, timeout: 240_000 });
    running.child.stdin!.end();
    const { stdout } = await running;
    return stdout;
  }

  const split = (words: string, last: string): string[] => {
    const list = words
      .replaceAll('{dir}', join(folder, 'project'))
      .replaceAll('{soon}', String(Math.ceil(Date.now() / 1000) + 1))
      .split(' ');
    return list.at(-1) === '-c' ? [...list, last] : list;
  };

  for (const program of COMMAND_LINES) {
    test(`${program}: commands of a day`, { timeout: 600_000 }, async () => {
      for (const [words, output] of LINES) {
        const line = await said([program, ...split(words, 'touch /t/x')]);
        assert.match(line, output, `docker ${words}`);
      }
      await engine.loadBusybox();
    });
  }

  for (const compose of COMPOSES) {
    test(`${compose.join(' ')}: a project`, { timeout: 600_000 }, async () => {
      for (const [words, output] of PROJECT_LINES) {
        const line = await said([...compose, ...split(words, 'cat /data/got')], join(folder, 'project'));
        assert.match(line, output, `compose ${words}`);
      }
      const { body } = await engine.get<object[]>('/containers/json?all=1');
      assert.deepEqual(body, []);
    });
  }
});
