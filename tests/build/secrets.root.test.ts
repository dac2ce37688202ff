import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';

import { gantry } from '@gantry/testing/clients/own-client.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

import { build, contextOf } from './compared.ts';

const SECRET = 'open-sesame-1001\nand a second line';

suite('secrets of a build', { concurrency: false }, () => {
  let engine: TestEngine;
  before(async () => {
    engine = await TestEngine.start({ flags: ['--bridge=none', '--debug'] });
  });
  after(async () => await engine[Symbol.asyncDispose]());

  const header = (secrets: unknown): Record<string, string> => ({
    'X-Build-Secrets': Buffer.from(JSON.stringify(secrets)).toString('base64'),
  });
  const given = header({ token: Buffer.from(SECRET).toString('base64') });
  async function said(file: string, headers: Record<string, string> = {}): Promise<string> {
    const { lines, message } = await build(engine, 'networkmode=none', contextOf({ Dockerfile: file }), headers);
    return message ?? lines.map(({ stream = '', error = '' }) => stream + error).join('');
  }
  const filesLeft = (): string[] => {
    const folder = join(engine.directory, 'exec/build-secrets');
    return existsSync(folder) ? readdirSync(folder) : [];
  };

  test('are files of one step, in its place, with its owner and mode, and in no layer', async () => {
    const text = await said(
      [
        'FROM busybox',
        'RUN --mount=type=secret,id=token stat -c "%a %u %g %s" /run/secrets/token; wc -l < /run/secrets/token',
        'RUN --mount=type=secret,id=token,target=/etc/my/token,mode=0440,uid=7,gid=8 stat -c "%a %u %g" /etc/my/token',
        'RUN --mount=type=secret,id=token echo changed > /run/secrets/token || echo is-read-only',
        'RUN ls /run/secrets/token /etc/my/token 2>&1 | wc -l; find / -xdev -type f -name token',
      ].join('\n'),
      given,
    );

    assert.match(text, new RegExp(`400 0 0 ${SECRET.length}\n1\n`));
    assert.match(text, /440 7 8\n/);
    assert.match(text, /is-read-only\n/);
    assert.match(text, /\n2\nRemoving[^]*Successfully built/);
    assert.deepEqual(filesLeft(), []);
    const { body } = await engine.get<{ Id: string }[]>('/images/json?all=1');
    for (const { Id } of body) assert.ok(!(await engine.get(`/images/${Id}/get`)).raw.includes('open-sesame'));
  });

  test('that are missing are left out, or refused where the step requires them', async () => {
    assert.match(await said('FROM busybox\nRUN --mount=type=secret,id=none ls /run/secrets || echo none'), /none\n/);
    assert.match(
      await said('FROM busybox\nRUN --mount=type=secret,id=none,required true', given),
      /secret none: not found/,
    );
  });

  test('are not shown when they cannot be read, when a step fails, and in the log', async () => {
    const wrong = [header(['open-sesame']), header({ token: 'open-sesame!' }), { 'X-Build-Secrets': 'open-sesame' }];
    for (const headers of wrong) {
      assert.equal(await said('FROM busybox', headers), 'X-Build-Secrets is not base64 of a JSON map of ids to base64');
    }
    const failed = await said('FROM busybox\nRUN --mount=type=secret,id=token false', given);

    assert.match(failed, /returned a non-zero code: 1/);
    const { body } = await engine.get<{ Id: string }[]>('/containers/json?all=1');
    const inspected = await Promise.all(body.map(async ({ Id }) => (await engine.get(`/containers/${Id}/json`)).raw));
    assert.ok(inspected.length > 0);
    const shown = [failed, engine.log, ...inspected.map(String)].join('\n');
    for (const secret of ['open-sesame', Buffer.from(SECRET).toString('base64'), given['X-Build-Secrets']!]) {
      assert.ok(!shown.includes(secret));
    }
    assert.deepEqual(filesLeft(), []);
  });

  test('do not count for the cache, as in BuildKit', async () => {
    const file = 'FROM busybox\nRUN --mount=type=secret,id=token cat /run/secrets/token | wc -c';
    await said(file, given);

    assert.match(await said(file, header({ token: '' })), /Using cache/);
  });

  test('of a killed daemon are removed by the next one', async () => {
    const context = contextOf({
      Dockerfile: 'FROM busybox\nRUN --mount=type=secret,id=token echo begun; sleep 1000\n',
    });
    const headers = { 'Content-Type': 'application/x-tar', ...given };
    const stream = await engine.stream('POST', '/build?networkmode=none', { body: context, headers });
    stream.on('error', () => undefined);
    for await (const chunk of stream) if (String(chunk).includes('begun')) break;
    await engine.kill();
    await engine.startAgain();

    assert.deepEqual(filesLeft(), []);
  });

  test('come from files and variables of the command line', async () => {
    const folder = join(engine.directory, 'project');
    mkdirSync(folder);
    writeFileSync(
      join(folder, 'Dockerfile'),
      'FROM busybox\nRUN --mount=type=secret,id=a --mount=type=secret,id=b cat /run/secrets/a /run/secrets/b | rev\n',
    );
    writeFileSync(join(folder, 'secret'), 'elif a fo');
    const build = async (...words: string[]): ReturnType<typeof gantry> =>
      await gantry(engine, ['build', '--network=none', '--no-cache', ...words, folder]);

    const { code, stdout, stderr } = await build(`--secret=id=a,src=${folder}/secret`, '--secret', 'id=b,env=PATH');
    assert.equal(code, 0, stderr);
    assert.match(stdout, /of a file/);
    for (const [wrong, why] of [
      ['src=x', /it has no id/],
      ['id=a,mode=1', /unexpected key 'mode'/],
      ['id=a,src=/nowhere', /secret a: no such file or directory/],
      ['id=a,env=NOT_THERE', /there is no variable NOT_THERE/],
    ] as const) {
      const refused = await build('--secret', wrong);
      assert.notEqual(refused.code, 0);
      assert.match(refused.stderr, why);
    }
  });
});
