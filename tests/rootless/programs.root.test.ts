import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { suite, test } from 'node:test';
import { promisify } from 'node:util';

import { newerClients } from '@gantry/testing/clients/newer-clients.ts';
import { eventually } from '@gantry/testing/eventually.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';
import { asUser, seenByUser, usersMayHaveNamespaces } from '@gantry/testing/users/rootless.ts';

const execute = promisify(execFile);
const root = dirname(dirname(import.meta.dirname));
const PORT = 8472;
const COMPOSE = `
version: '3'
services:
  web:
    image: busybox
    command: sh -c 'mkdir /www; echo composed > /www/index.html; exec httpd -f -p 80 -h /www'
    ports: ['${PORT}:80']
    volumes: ['kept:/kept']
volumes: { kept: {} }
`;

suite('programs of an ordinary user', { concurrency: false }, usersMayHaveNamespaces() ? allowed : forbidden);

function forbidden(): void {
  test('without namespaces of users it does not start, and says why', async () => {
    await assert.rejects(TestEngine.start({ rootless: true }), /namespace|overlay/);
  });
}

function allowed(): void {
  test('the command line of that user finds its engine; the keeper ends after the daemon', async () => {
    await using engine = await TestEngine.start({ rootless: true });
    await engine.kill('SIGTERM');
    await engine.startAgain([`--host=unix://${engine.directory}/run/gantry/gantry.sock`]);

    const { stdout } = await ofUser(engine, [process.execPath, join(root, 'cli/main.ts'), 'images', '-q']);

    assert.match(stdout, /^[0-9a-f]{12}\n$/);
    // Disposing waits until no process of the user is left.
  });

  test('the demo runs as an ordinary user', async () => {
    await using engine = await TestEngine.start({ rootless: true, image: false });

    const { stdout } = await ofUser(engine, [process.execPath, join(root, 'tools/demos/main.ts')]);

    for (const shown of [
      /exit code 3/,
      /Nice to meet you, Ada/,
      /answers: served from a container/,
      /20 of 20 ended/,
    ]) {
      assert.match(stdout, shown);
    }
  });

  const skip = newerClients() === undefined; // `./gantry test` says why
  test('compose 1, compose 2 and the newer command line work', { skip }, async () => {
    await using engine = await TestEngine.start({ rootless: true });
    const file = join(engine.directory, 'compose.yaml');
    await writeFile(file, COMPOSE, { mode: 0o644 });
    const variables = [
      `DOCKER_HOST=unix://${engine.socketPath}`,
      'COMPOSE_API_VERSION=auto',
      'DOCKER_CONFIG=/tmp/none',
    ];
    const asked = async (...command: string[]): Promise<string> => {
      const { stdout } = await ofUser(engine, ['env', ...variables, ...command]);
      return stdout;
    };
    const { docker, plugins } = newerClients()!;
    const compose2 = join(plugins, 'docker-compose');

    for (const [index, compose] of ['docker-compose', compose2].entries()) {
      const project = [compose, '-p', `own${index}`, '-f', file];
      await asked(...project, 'up', '-d');
      const page = await eventually('the service answers', async () => await engine.fetchText(PORT));
      assert.equal(page, 'composed\n');
      await asked(...project, 'down', '-v', '-t', '0');
      assert.deepEqual((await engine.get('/containers/json?all=1')).body, []);
    }
    assert.equal(await asked(docker, 'run', '--rm', '-v', 'kept:/v', 'busybox', 'id', '-u'), '0\n');
    assert.match(await asked(docker, 'info', '--format', '{{json .SecurityOptions}}'), /name=rootless/);
  });
}

/** Runs a command as the engine's user, who finds files of this repository below /mnt. */
async function ofUser(engine: TestEngine, command: readonly string[]): Promise<{ stdout: string; stderr: string }> {
  const [program = '', ...words] = [...asUser(engine.user!, engine.directory), ...command.map(seenByUser)];
  return await execute('nsenter', [`--net=${engine.netns}`, program, ...words]);
}
