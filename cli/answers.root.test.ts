import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';

import {
  gantry,
  ownClient,
  refused as refusedBy,
  said as saidBy,
  type Outcome,
} from '@gantry/testing/clients/own-client.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

const execute = promisify(execFile);
let engine: TestEngine;

before(async () => {
  engine = await TestEngine.start();
});
after(async () => await engine[Symbol.asyncDispose]());

const said = async (...words: string[]): Promise<string> => await saidBy(engine, ...words);
const refused = async (...words: string[]): Promise<Outcome> => await refusedBy(engine, ...words);

test('a name in an error or a cell cannot steer the terminal', async () => {
  const wicked = '\u001b[2Jevil';
  await said('run', '--name', 'wicked', 'busybox', 'sh', '-c', `: ${wicked}`);

  const listed = await said('ps', '-a', '--no-trunc', '--filter', 'name=wicked');
  const error = await refused('inspect', wicked);

  assert.ok(!(listed + error.stderr).includes('\u001b'));
  assert.match(listed, /\\x1b|\\u001b/);
  await said('rm', 'wicked');
});

test('unreadable words end with 125, in one form', async () => {
  for (const [line, message] of [
    [['pz'], /^gantry: unknown command 'pz'\nDid you mean 'ps'\?\nSee 'gantry --help'\.\n$/],
    [
      ['volume', 'lst'],
      /^gantry: unknown command 'volume lst'\nDid you mean .*'ls'.*\nSee 'gantry volume --help'\.\n$/,
    ],
    [['-H', 'nowhere', 'ps'], /^gantry: invalid host "nowhere": .*\nSee 'gantry ps --help'\.\n$/],
    [['ps', 'x'], /^gantry: 'gantry ps' accepts no arguments\nSee 'gantry ps --help'\.\n$/],
    [['stop', '--nonsense', 'x'], /^gantry: unknown flag: --nonsense\nSee 'gantry stop --help'\.\n$/],
    [['images', '--format', '{{.Nope}}'], /^gantry: template: unknown field \.Nope\n/],
    [
      ['run', '--annotation', 'a=b', 'busybox'],
      /^gantry: --annotation cannot be used: API 1\.24 does not have it\nSee 'gantry run --help'\.\n$/,
    ],
    [['logs', '--since', 'soon', 'x'], /^gantry: invalid time "soon"/],
  ] as const) {
    const { code, stderr } = await gantry(engine, line);
    assert.deepEqual([line, code], [line, 125]);
    assert.match(stderr, message);
  }
});

test('a missing feature is reported, with its replacement', async () => {
  assert.match(
    (await refused('stack', 'ls')).stderr,
    /^gantry: 'stack' is not built yet\. Use services, such as: gantry service create/,
  );
});

test('a registry that does not answer is named, by pull and by run', async () => {
  assert.match((await refused('pull', '127.0.0.1:9/alpine')).stderr, /^gantry: Get "http.*connection refused/);
  const missing = await gantry(engine, ['run', '127.0.0.1:9/alpine']);
  assert.equal(missing.code, 125);
  assert.match(
    missing.stderr,
    /^Unable to find image '127\.0\.0\.1:9\/alpine:latest' locally\ngantry: Get "http.*connection refused/,
  );
});

test('a detach says that the container goes on', async () => {
  await said('run', '-dit', '--name', 'left', 'busybox', 'sh', '-c', 'while :; do echo asking; sleep 0.1; done');
  const running = execute('script', ['-qec', `${process.execPath} ${ownClient} attach left`, '/dev/null'], {
    env: { ...process.env, GANTRY_HOST: `unix://${engine.socketPath}` },
  });
  const typed = new Promise<void>((resolve) => running.child.stdout!.once('data', () => resolve()));
  await typed;
  running.child.stdin!.write('\u0010\u0011');

  assert.match((await running).stdout, /Detached: left goes on\. .*gantry attach left/);
  assert.equal(await said('inspect', '-f', '{{.State.Running}}', 'left'), 'true');
  await said('rm', '-f', 'left');
});

test('colours are for terminals that want them', async () => {
  const underTerminal = async (env: NodeJS.ProcessEnv) => {
    const line = `${process.execPath} ${ownClient} ps`;
    const { stdout } = await execute('script', ['-qec', line, '/dev/null'], {
      env: { ...process.env, GANTRY_HOST: `unix://${engine.socketPath}`, TERM: 'xterm', ...env },
    });
    return stdout;
  };

  assert.ok((await underTerminal({ NO_COLOR: '' })).startsWith('\u001b[1mCONTAINER ID'));
  assert.match(await underTerminal({ NO_COLOR: '1' }), /^CONTAINER ID/);
  assert.match(await said('ps'), /^CONTAINER ID/);
});

test('a short command loads nothing of Node that is slow to load', async () => {
  const report = `data:text/javascript,process.on('exit', () => console.error(process.moduleLoadList.join('\\n')))`;
  const { stderr } = await execute(process.execPath, ['--import', report, ownClient, 'ps'], {
    env: { ...process.env, GANTRY_HOST: `unix://${engine.socketPath}` },
  });

  assert.match(stderr, /NativeModule _http_client\n/);
  for (const slow of ['undici', 'webstreams', 'fs/promises']) {
    assert.doesNotMatch(stderr, new RegExp(`^NativeModule internal/.*${slow}`, 'm'), slow);
  }
});

test('completion offers commands, flags, and names of existing objects', async () => {
  await said('create', '--name', 'complete-me', 'busybox');
  const offered = async (...words: string[]) =>
    (await said('__complete', ...words)).split('\n').map((line) => line.split('\t')[0]);

  assert.deepEqual(await offered('st'), ['start', 'stop', 'stats']);
  assert.deepEqual(await offered('volume', 'r'), ['rm', 'remove']);
  assert.deepEqual(await offered('run', '--env'), ['--env-file', '--env']);
  assert.deepEqual(await offered('rm', 'compl'), ['complete-me']);
  assert.deepEqual(await offered('run', '--rm', 'busy'), ['busybox:latest']);
  assert.deepEqual(await offered('run', '--network', 'n'), ['none']);
  assert.deepEqual(await offered('run', '--restart=al'), ['--restart=always']);
  assert.deepEqual(await offered('load', '-i', ''), [':file']);
  assert.deepEqual(await offered('run', 'busybox', 'ls', '-'), ['']);
  await said('rm', 'complete-me');
});

test('every flag of docker’s run, create and exec is known here', async () => {
  for (const name of ['run', 'create', 'exec']) {
    const [theirs, ours] = await Promise.all([engine.docker(name, '--help'), said(name, '--help')]);
    for (const [, flag] of theirs.stdout.matchAll(/^ +(?:-\w, )?--([\w-]+)/gm))
      assert.match(ours, new RegExp(`--${flag}\\b`), `${name} --${flag}`);
  }
});
