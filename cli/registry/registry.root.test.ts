import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { promisify } from 'node:util';

import { TarWriter } from '@gantry/testing/archives/tar-writer.ts';
import { gantry, ownClient } from '@gantry/testing/clients/own-client.ts';
import { Registries } from '@gantry/testing/registries/registries.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

const execute = promisify(execFile);
const GUARDED = '127.0.0.1:5002';
const WITH_TOKENS = '127.0.0.1:5003';
const PASSWORD = 'secret-of-alice';

/** Keeps what it gets in a file of its own. */
const HELPER = `#!/bin/sh
file="$HELPER_FILE"
case "$1" in
  store) cat > "$file" ;;
  get) if [ -s "$file" ]; then cat "$file"; else echo 'credentials not found in native keychain'; exit 1; fi ;;
  erase) cat > /dev/null; : > "$file" ;;
esac
`;

suite('registries on the command line', { concurrency: false }, () => {
  let engine: TestEngine;
  let registries: Registries;
  const folder = mkdtempSync(join(tmpdir(), 'gantry-docker-config-'));
  const configFile = join(folder, 'config.json');

  before(async () => {
    engine = await TestEngine.start({ flags: ['--bridge=none'] });
    registries = await Registries.start(join(engine.directory, 'netns'));
    await registries.registry(5000);
    await registries.registry(5002, { users: { alice: PASSWORD } });
    await registries.proxy(5003, 5000, { user: 'alice', password: PASSWORD });
  });
  after(async () => {
    await registries[Symbol.asyncDispose]();
    await engine[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true });
  });

  const env = { DOCKER_CONFIG: folder, HELPER_FILE: join(folder, 'kept'), PATH: `${folder}:${process.env.PATH}` };
  const run = async (words: string[], stdin?: string) => await gantry(engine, words, { env, ...(stdin && { stdin }) });
  const config = (): Record<string, Record<string, unknown>> =>
    JSON.parse(readFileSync(configFile, 'utf8')) as Record<string, Record<string, unknown>>;
  const logIn = async (server: string, password = PASSWORD) =>
    await run(['login', '-u', 'alice', '--password-stdin', server], `${password}\n`);

  test('a login is checked and kept in docker’s file, which keeps its other settings; push and pull use it', async () => {
    writeFileSync(configFile, '{"detachKeys": "ctrl-x"}');
    await run(['tag', 'busybox', `${GUARDED}/box`]);
    const refused = await run(['push', `${GUARDED}/box`]);
    const wrong = await logIn(GUARDED, 'wrong-password');
    const right = await logIn(GUARDED);
    const pushed = await run(['push', `${GUARDED}/box`]);
    await run(['rmi', `${GUARDED}/box`]);
    const pulled = await run(['pull', `${GUARDED}/box`]);

    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /^gantry: no basic auth credentials/m);
    assert.match(wrong.stderr, /^gantry: login attempt to .* failed with status: 401 Unauthorized/m);
    assert.match(right.stdout, /^Login Succeeded$/m);
    assert.equal(statSync(configFile).mode & 0o777, 0o600);
    assert.equal(config().detachKeys, 'ctrl-x');
    assert.deepEqual(config().auths, { [GUARDED]: { auth: Buffer.from(`alice:${PASSWORD}`).toString('base64') } });
    assert.match(pushed.stdout, /^latest: digest: sha256:[0-9a-f]{64} size: \d+$/m);
    assert.match(pulled.stdout, /^Status: Downloaded newer image for 127\.0\.0\.1:5002\/box:latest$/m);
    assert.doesNotMatch(pulled.stdout, /Downloading/);
  });

  test('docker’s command line uses the same login, and ours uses its', async () => {
    const docker = async (...words: string[]): Promise<string> => {
      const { stdout } = await execute('docker', ['--config', folder, '-H', `unix://${engine.socketPath}`, ...words]);
      return stdout;
    };
    assert.match(await docker('pull', `${GUARDED}/box`), /Image is up to date/);
    await run(['logout', GUARDED]);
    assert.deepEqual(config().auths, {});
    assert.match(await docker('login', '-u', 'alice', '-p', PASSWORD, GUARDED), /Login Succeeded/);
    assert.match(await docker('push', `${GUARDED}/box`), /latest: digest: sha256/);
    assert.match((await run(['pull', `${GUARDED}/box`])).stdout, /Image is up to date/);
    await docker('logout', GUARDED);
    assert.equal((await run(['pull', `${GUARDED}/box`])).code, 1);
  });

  test('a credential helper keeps the login, and a token takes the place of the password', async () => {
    writeFileSync(join(folder, 'docker-credential-test'), HELPER);
    chmodSync(join(folder, 'docker-credential-test'), 0o755);
    writeFileSync(configFile, JSON.stringify({ credHelpers: { [WITH_TOKENS]: 'test' } }));
    await run(['tag', 'busybox', `${WITH_TOKENS}/box`]);

    const done = await logIn(WITH_TOKENS);
    const pushed = await run(['push', '-q', `${WITH_TOKENS}/box`]);

    assert.match(done.stdout, /Login Succeeded/, done.stderr);
    assert.deepEqual(JSON.parse(readFileSync(join(folder, 'kept'), 'utf8')), {
      ServerURL: WITH_TOKENS,
      Username: '<token>',
      Secret: 'refresh-alice',
    });
    assert.doesNotMatch(readFileSync(configFile, 'utf8'), /secret|refresh/);
    assert.deepEqual([pushed.code, pushed.stdout], [0, `${WITH_TOKENS}/box:latest\n`], pushed.stderr);
    await run(['logout', WITH_TOKENS]);
    assert.equal((await run(['push', `${WITH_TOKENS}/box`])).code, 1);
  });

  test('run pulls a missing image, and stdout is the container’s alone', async () => {
    await run(['tag', 'busybox', '127.0.0.1:5000/run/box:1']);
    await run(['push', '127.0.0.1:5000/run/box:1']);
    await run(['rmi', '127.0.0.1:5000/run/box:1']);

    const { code, stdout, stderr } = await run(['run', '--rm', '127.0.0.1:5000/run/box:1', 'echo', 'hello']);

    assert.deepEqual([code, stdout], [0, 'hello\n'], stderr);
    assert.match(stderr, /^Unable to find image '127\.0\.0\.1:5000\/run\/box:1' locally\n1: Pulling from run\/box\n/);
  });

  test('on a terminal each layer has a row of its own', async () => {
    const layers = ['a', 'b', 'c'].map((name) => new TarWriter().add({ name, content: name }).end());
    await registries.putImage('127.0.0.1:5000/v2/rows', 'latest', layers);

    const { stdout } = await execute(
      'script',
      ['-qec', `${process.execPath} ${ownClient} pull 127.0.0.1:5000/rows`, '/dev/null'],
      {
        env: { ...process.env, ...env, GANTRY_HOST: `unix://${engine.socketPath}` },
      },
    );

    // oxlint-disable-next-line no-control-regex -- what moves the cursor is what is looked for
    assert.match(stdout, /\u001B\[\d+A\r\u001B\[2K[0-9a-f]{12}: Pull complete/);
    assert.match(stdout, /Status: Downloaded newer image/);
  });
});
