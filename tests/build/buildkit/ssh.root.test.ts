import assert from 'node:assert/strict';
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { copyFile, mkdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { promisify } from 'node:util';

import { eventually } from '@gantry/testing/eventually.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

import { clients, Project, type Said } from './project.ts';

const execute = promisify(execFile);
const ADD = '/usr/bin/ssh-add';

suite('RUN --mount=type=ssh', { skip: clients === undefined && 'its packages could not be fetched' }, () => {
  let engine: TestEngine;
  let project: Project;
  let agent: ChildProcess;
  let socket: string;
  let fingerprint: string;
  before(async () => {
    engine = await TestEngine.start({ flags: ['--bridge=none'] });
    project = await Project.make(engine.socketPath);
    socket = join(project.folder, 'agent.sock');
    agent = spawn('ssh-agent', ['-D', '-a', socket], { stdio: 'ignore' });
    await eventually('the agent listens', () => existsSync(socket));
    const key = join(project.folder, 'key');
    await execute('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', key]);
    await execute('ssh-add', [key], { env: { ...process.env, SSH_AUTH_SOCK: socket } });
    fingerprint = /SHA256:\S+/.exec((await execute('ssh-keygen', ['-lf', key])).stdout)![0];
    await programInto(join(project.folder, 'base/root'));
    const { code, text } = await project.build('base', { Dockerfile: 'FROM busybox\nCOPY root /\n' });
    assert.equal(code, 0, text);
  });
  after(async () => {
    agent.kill();
    await project[Symbol.asyncDispose]();
    await engine[Symbol.asyncDispose]();
  });

  const build = async (name: string, lines: readonly string[], ...flags: readonly string[]): Promise<Said> =>
    await project.build(name, { Dockerfile: ['FROM base', ...lines].join('\n') }, '--network=none', ...flags);

  test('a step asks the agent of its client, several times, and by its id', async () => {
    const lines = [
      'RUN --mount=type=ssh ssh-add -l && ssh-add -l && echo at "$SSH_AUTH_SOCK"',
      'RUN --mount=type=ssh,id=other,target=/agent,uid=7,gid=8,mode=0640 stat -c "%a %u %g" /agent && ssh-add -l',
      'RUN ! ssh-add -l && test -z "$SSH_AUTH_SOCK" && ! ls /run/buildkit /agent',
    ];

    const { code, text } = await build('asked', lines, '--ssh', `default=${socket}`, '--ssh', `other=${socket}`);

    assert.equal(code, 0, text);
    assert.equal(text.split(fingerprint).length - 1, 3, text);
    assert.match(text, /at \/run\/buildkit\/ssh_agent\.0/);
    assert.match(text, /640 7 8\n/);
    const left = join(engine.directory, 'exec/build-secrets');
    assert.deepEqual(existsSync(left) ? readdirSync(left) : [], []);
  });

  test('a missing agent is left out, or refused where the step requires it', async () => {
    const optional = await build('optional', ['RUN --mount=type=ssh ! ssh-add -l && echo "without $SSH_AUTH_SOCK"']);
    assert.equal(optional.code, 0, optional.text);
    assert.match(optional.text, /without \/run\/buildkit\/ssh_agent\.0/);

    const required = await build('required', ['RUN --mount=type=ssh,required=true ssh-add -l']);
    assert.equal(required.code, 1);
    assert.match(required.text, /no SSH key "default" forwarded from the client/);
  });
});

/** Copies a program of this machine with its libraries into a folder, at their places. */
async function programInto(root: string): Promise<void> {
  const { stdout } = await execute('ldd', [ADD]);
  const libraries = [...stdout.matchAll(/(\/\S+) \(0x/g)].map(([, path]) => path!);
  for (const path of [ADD, ...libraries]) {
    const place = join(root, path === ADD ? '/bin/ssh-add' : path);
    await mkdir(dirname(place), { recursive: true });
    await copyFile(path, place);
  }
}
