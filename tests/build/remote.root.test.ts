import assert from 'node:assert/strict';
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, readlinkSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';

import { endProcess } from '@gantry/testing/daemon-process.ts';
import { eventually } from '@gantry/testing/eventually.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

import { build, contextOf } from './compared.ts';

const BUILDFILE = 'FROM busybox\nCOPY x /\nRUN cat /x\n';
/** Serves the files of a folder; the name tells the type. */
const SERVER = `
  const { createServer } = require('node:http');
  const { readFileSync } = require('node:fs');
  const types = { gz: 'application/gzip', html: 'text/html', Buildfile: 'text/plain; charset=utf-8' };
  createServer((request, response) => {
    if (request.url.includes('silent')) return; // for ever
    const path = process.argv[1] + new URL(request.url, 'http://x').pathname;
    try {
      const body = readFileSync(path);
      response.setHeader('Last-Modified', 'Sun, 06 Nov 1994 08:49:37 GMT');
      response.setHeader('Content-Type', types[path.split(/[./]/).at(-1)] ?? 'application/octet-stream');
      response.end(body);
    } catch { response.statusCode = 404; response.end('none'); }
  }).listen(8080, '127.0.0.1');
`;

suite('contexts and files of other machines', { concurrency: false }, () => {
  let engine: TestEngine;
  let folder: string;
  const servers: ChildProcess[] = [];

  before(async () => {
    engine = await TestEngine.start();
    folder = join(engine.directory, 'served');
    mkdirSync(folder);
    makeFiles(folder);
    makeRepository(folder);
    const gitPrograms = execFileSync('git', ['--exec-path'], { encoding: 'utf8' }).trim();
    const within = (...command: string[]): void => {
      const words = [`--net=${join(engine.directory, 'netns')}`, ...command];
      servers.push(spawn('nsenter', words, { stdio: 'ignore' }));
    };
    within(process.execPath, '-e', SERVER, folder);
    within(
      join(gitPrograms, 'git-daemon'),
      '--reuseaddr',
      `--base-path=${folder}`,
      '--export-all',
      '--listen=127.0.0.1',
    );
    for (const port of [8080, 9418]) await listens(engine, port);
  });
  after(async () => {
    for (const server of servers) await endProcess(server, 'SIGKILL');
    await engine[Symbol.asyncDispose]();
  });

  async function said(query: Record<string, string>, context: Buffer = Buffer.alloc(0)): Promise<string> {
    const { lines, message } = await build(engine, new URLSearchParams(query).toString(), context);
    return message ?? lines.map(({ stream = '', error = '' }) => stream + error).join('');
  }

  test('an archive and a text of a web server', async () => {
    assert.match(
      await said({ remote: 'http://127.0.0.1:8080/context.tar.gz' }),
      /of the archive\n[\s\S]*Successfully built/,
    );
    assert.match(await said({ remote: 'http://127.0.0.1:8080/Buildfile' }), /alone\n[\s\S]*Successfully built/);
  });

  test('a context of neither kind is refused before the first step', async () => {
    for (const [remote, reason] of [
      ['http://127.0.0.1:8080/page.html', /unsupported Content-Type/],
      ['http://127.0.0.1:8080/none', /404/],
      ['ftp://127.0.0.1/x', /could not be recognized as URL/],
      ['file:///etc/passwd', /could not be recognized as URL/],
      ['git@127.0.0.1:x.git', /only http, https and git are supported/],
      ['git://127.0.0.1/repository#--upload-pack=touch /tmp/x', /invalid refspec/],
      ['git://127.0.0.1/none', /unable to prepare context/],
      ['git://127.0.0.1/repository#none', /unable to prepare context/],
      ['git://127.0.0.1/repository#:none', /not within git root or not a folder/],
      ['git://127.0.0.1/repository#:../..', /not within git root or not a folder/],
      ['git://127.0.0.1/repository#:out', /not within git root or not a folder/],
    ] as const) {
      const answer = await said({ remote });

      assert.match(answer, reason, remote);
      assert.doesNotMatch(answer, /Step 1/);
    }
  });

  test('a Git repository, its branches and folders', async () => {
    const address = 'git://127.0.0.1/repository';

    assert.match(await said({ remote: address }), /first branch\n[\s\S]*Successfully built/);
    assert.match(await said({ remote: `${address}#other` }), /other branch\n[\s\S]*Successfully built/);
    assert.match(await said({ remote: `${address}#other:inner` }), /inner folder\n[\s\S]*Successfully built/);
    assert.match(await said({ remote: `${address}#modes` }), /\n755 inner\n644 inner\/x\n755 program\n/);
  });

  test('a Git repository of a web server that knows nothing of Git', async () => {
    const commit = execFileSync('git', ['rev-parse', 'main'], { cwd: join(folder, 'bare.git'), encoding: 'utf8' });
    for (const [remote, text] of [
      ['bare.git', 'first branch'],
      ['bare.git#other', 'other branch'],
      ['bare.git#refs/heads/other:inner', 'inner folder'],
      [`bare.git#${commit.trim()}`, 'first branch'],
      [`bare.git#${commit.slice(0, 9)}`, 'first branch'],
      ['headless.git', 'first branch'],
      ['headless.git#other', 'other branch'],
      ['outer.git', 'of the submodule: first branch'],
    ] as const) {
      const answer = await said({ remote: `http://127.0.0.1:8080/${remote}`, nocache: '1' });

      assert.match(answer, new RegExp(`\\n${text}\\n[^]*Successfully built`), remote);
    }
    assert.match(await said({ remote: 'http://127.0.0.1:8080/bare.git#none' }), /unable to prepare context.* ref none/);
  });

  test('a link of a repository reads nothing of this machine', async () => {
    const answer = await said({ remote: 'git://127.0.0.1/repository#:links' });

    assert.doesNotMatch(answer, /root:/);
    assert.match(answer, /passwd/);
  });

  for (const [name, leaves] of [
    ['its client has left', async (client: AbortController) => client.abort()],
    ['the daemon was killed', async () => await engine.kill()],
  ] as const) {
    for (const remote of ['silent.git', 'waiting.git']) {
      test(`git ends with all its children when ${name}: ${remote}`, async () => {
        const client = new AbortController();
        const path = `/build?remote=${encodeURIComponent(`http://127.0.0.1:8080/${remote}`)}`;
        const building = engine.post(path, Buffer.alloc(0), { signal: client.signal });
        building.catch(() => undefined); // as planned
        const builds = join(engine.dataRoot, 'builds');
        const working = /git-remote-http[^]*silent/;
        await eventually(`${remote} is fetched`, async () => working.test(processesIn(builds)) || undefined);

        await leaves(client);

        await eventually('no process is left', async () => processesIn(builds) === '' || undefined);
        if (engine.hasEnded) await engine.startAgain();
      });
    }
  }

  test('ADD of an address is a file with the mode 600, the time of the server, and is never extracted', async () => {
    const file = [
      'FROM busybox',
      'ADD http://127.0.0.1:8080/context.tar.gz /got/',
      'ADD http://127.0.0.1:8080/Buildfile /named',
      'RUN stat -c "%a %Y %n" /got/context.tar.gz /named',
    ].join('\n');
    const context = contextOf({ Buildfile: file });

    const first = await said({}, context);
    const second = await said({}, context);
    writeFileSync(join(folder, 'Buildfile'), `${BUILDFILE}# changed\n`);
    const third = await said({}, context);

    assert.match(first, /600 784111777 \/got\/context\.tar\.gz\n600 784111777 \/named\n/);
    assert.equal(second.match(/Using cache/g)?.length, 3);
    assert.equal(third.match(/Using cache/g)?.length, 1);
    assert.match(await said({}, contextOf({ Buildfile: 'FROM busybox\nADD http://127.0.0.1:8080/none /x' })), /404/);
  });
});

function makeFiles(folder: string): void {
  const files = { Buildfile: BUILDFILE, x: 'of the archive\n' };
  writeFileSync(join(folder, 'context.tar.gz'), gzipSync(contextOf(files)));
  writeFileSync(join(folder, 'Buildfile'), 'FROM busybox\nRUN echo alone\n');
  writeFileSync(join(folder, 'page.html'), '<p>');
}

function makeRepository(folder: string): void {
  const repository = join(folder, 'repository');
  const git = (...words: string[]): string =>
    execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b', ...words], { cwd: repository, encoding: 'utf8' });
  const commit = (text: string): void => {
    writeFileSync(join(repository, 'Buildfile'), BUILDFILE);
    writeFileSync(join(repository, 'x'), `${text}\n`);
    git('add', '--all');
    git('commit', '--quiet', '--message', text);
  };
  mkdirSync(join(repository, 'links'), { recursive: true });
  git('init', '--quiet', '--initial-branch=main');
  symlinkSync('/', join(repository, 'out'));
  symlinkSync('/etc/passwd', join(repository, 'links/passwd'));
  writeFileSync(join(repository, 'links/Buildfile'), 'FROM busybox\nCOPY passwd /got\nRUN cat /got\n');
  commit('first branch');
  git('checkout', '--quiet', '-b', 'other');
  mkdirSync(join(repository, 'inner'));
  writeFileSync(join(repository, 'inner/Buildfile'), BUILDFILE);
  writeFileSync(join(repository, 'inner/x'), 'inner folder\n');
  commit('other branch');
  git('checkout', '--quiet', '-b', 'modes');
  writeFileSync(join(repository, 'program'), '#!/bin/sh\n', { mode: 0o755 });
  const showing = `FROM busybox\nCOPY . /all\nRUN cd /all && stat -c '%a %n' inner inner/x program\n`;
  writeFileSync(join(repository, 'Dockerfile'), showing);
  execFileSync('git', ['rm', '--quiet', '--force', 'Buildfile'], { cwd: repository });
  git('add', '--all');
  git('commit', '--quiet', '--message', 'modes');
  git('checkout', '--quiet', 'main');
  serve(repository, folder, 'bare.git');
  serve(repository, folder, 'headless.git');
  rmSync(join(folder, 'headless.git/HEAD'));
  const outer = join(folder, 'outer');
  mkdirSync(outer);
  const inOuter = (...words: string[]): string =>
    execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b', '-c', 'protocol.file.allow=always', ...words], {
      cwd: outer,
      encoding: 'utf8',
    });
  inOuter('init', '--quiet');
  writeFileSync(join(outer, 'Dockerfile'), 'FROM busybox\nCOPY sub/x /\nRUN echo of the submodule: $(cat /x)\n');
  inOuter('submodule', '--quiet', 'add', repository, 'sub');
  inOuter('config', '--file', '.gitmodules', 'submodule.sub.url', 'http://127.0.0.1:8080/bare.git');
  inOuter('add', '--all');
  inOuter('commit', '--quiet', '--message', 'outer');
  serve(outer, folder, 'outer.git');
  inOuter('config', '--file', '.gitmodules', 'submodule.sub.url', 'http://127.0.0.1:8080/silent.git');
  inOuter('commit', '--quiet', '--all', '--message', 'waiting');
  serve(outer, folder, 'waiting.git');
}

/** The command lines of processes with a working folder below this one. */
function processesIn(folder: string): string {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => {
      try {
        if (!readlinkSync(`/proc/${pid}/cwd`).startsWith(folder)) return '';
        return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
      } catch {
        return ''; // it has ended meanwhile
      }
    })
    .join('');
}

/** Makes a repository for plain web servers. */
function serve(repository: string, folder: string, name: string): void {
  execFileSync('git', ['clone', '--quiet', '--bare', repository, join(folder, name)]);
  execFileSync('git', ['update-server-info'], { cwd: join(folder, name) });
}

async function listens(engine: TestEngine, port: number): Promise<void> {
  for (const deadline = Date.now() + 60_000; Date.now() < deadline; await pause(50)) {
    const sockets = await engine.onHost(['ss', '-Hltn', `sport = :${port}`]);
    if (sockets.trim() !== '') return;
  }
  throw new Error(`nothing listens on ${port}`);
}
