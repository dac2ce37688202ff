import assert from 'node:assert/strict';
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { chmod, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';

import { endProcess } from '@gantry/testing/daemon-process.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

import { clients, Project } from './project.ts';

/** Files of the context; all are as old as `TIME`. */
const FILES = {
  'a.txt': 'a',
  'run.sh': '#!/bin/sh\n',
  'sub/b.txt': 'b',
  'sub/deep/c.md': 'c',
  'sub/deep/d.txt': 'd',
};
const TIME = 1_600_000_000;
const FOLDERS = ['sub/deep', 'sub'];

type Row = Readonly<{ lines: readonly string[]; at: string; files: readonly string[] }>;

/** Instructions, a folder of their result, and its files as `stat` shows them: BuildKit in dockerd 28.5 makes the same. */
const rows: readonly Row[] = [
  {
    lines: ['COPY --link a.txt /x/y/', 'COPY --link --chown=1:2 sub /x/s/'],
    at: '/x',
    files: [
      `644 0:0 ${TIME} /x/y/a.txt`,
      `755 1:2 ${TIME} /x/s`,
      `644 1:2 ${TIME} /x/s/b.txt`,
      `755 1:2 ${TIME} /x/s/deep`,
      `644 1:2 ${TIME} /x/s/deep/c.md`,
      `644 1:2 ${TIME} /x/s/deep/d.txt`,
    ],
  },
  {
    lines: ['COPY --exclude=*.md --exclude=**/d.txt sub /s/'],
    at: '/s',
    files: [
      `755 0:0 ${TIME} /s`,
      `644 0:0 ${TIME} /s/b.txt`,
      `755 0:0 ${TIME} /s/deep`,
      `644 0:0 ${TIME} /s/deep/c.md`,
    ],
  },
  {
    lines: ['COPY --exclude=deep --exclude=!deep/c.md sub /s/'],
    at: '/s',
    files: [
      `755 0:0 ${TIME} /s`,
      `644 0:0 ${TIME} /s/b.txt`,
      `755 0:0 ${TIME} /s/deep`,
      `644 0:0 ${TIME} /s/deep/c.md`,
    ],
  },
  {
    lines: ['COPY --exclude=a.txt a.txt /s/', 'ADD --exclude=deep sub /s/'],
    at: '/s',
    files: [`755 0:0 ${TIME} /s`, `644 0:0 ${TIME} /s/a.txt`, `644 0:0 ${TIME} /s/b.txt`],
  },
  {
    lines: ['COPY --parents sub/deep/c.md sub/./deep/d.txt /s/'],
    at: '/s',
    files: [
      `755 0:0 ${TIME} /s`,
      `755 0:0 ${TIME} /s/deep`,
      `644 0:0 ${TIME} /s/deep/d.txt`,
      `755 0:0 ${TIME} /s/sub`,
      `755 0:0 ${TIME} /s/sub/deep`,
      `644 0:0 ${TIME} /s/sub/deep/c.md`,
    ],
  },
  {
    lines: ['COPY --chmod=u=rwX,go=rX sub /s/', 'COPY --chmod=a+x,u+s a.txt /s/', 'COPY --chmod=0600 run.sh /s/'],
    at: '/s',
    files: [
      `4755 0:0 ${TIME} /s/a.txt`,
      `644 0:0 ${TIME} /s/b.txt`,
      `755 0:0 ${TIME} /s/deep`,
      `644 0:0 ${TIME} /s/deep/c.md`,
      `644 0:0 ${TIME} /s/deep/d.txt`,
      `600 0:0 ${TIME} /s/run.sh`,
    ],
  },
  {
    lines: [
      'RUN echo app:x:2:2::/: > /etc/passwd',
      'ARG M=640',
      'COPY --chown=${NONE:-app}:5 --chmod=$M sub/*.txt nothing* /s/',
    ],
    at: '/s',
    files: [`640 2:5 ${TIME} /s/b.txt`],
  },
  {
    lines: [
      'ARG V=w',
      `COPY <<a <<-"b" <<'c' /s/`,
      String.raw`hi $V "q" \$V`,
      'a',
      '\t\ttab $V',
      'b',
      'x ${V}',
      'c',
      'RUN <<EOF cat > /s/d',
      '\tstays',
      'EOF',
      'RUN cat /s/a /s/b /s/c /s/d | tr "\\n" "|" > /s/all',
      'RUN test "$(cat /s/all)" = "hi w \\"q\\" \\$V|tab \\$V|x \\${V}|\tstays|"',
      'RUN rm /s/*',
    ],
    at: '/s',
    files: [],
  },
];

/** Instructions that are refused, and why. */
const refusals: readonly (readonly [string, RegExp])[] = [
  ['COPY --chmd=5 a.txt /q/', /parse error on line 2: unknown flag: --chmd \(did you mean chmod\?\)/],
  ['COPY --link=maybe a.txt /', /expecting boolean value for flag --link, not: maybe/],
  ['COPY --chmod a.txt /', /missing a value on flag: --chmod/],
  ['COPY --chmod=1 --chmod=2 a.txt /', /duplicate flag specified: --chmod/],
  ['COPY --checksum=sha256:aa a.txt /', /unknown flag: --checksum/],
  ['COPY --chmod=999 a.txt /', /invalid chmod parameter: '999'. it should be octal string and between 0 and 07777/],
  ['COPY --chown=nobodys a.txt /', /no such user: nobodys/],
  ['COPY --chmod=u~x a.txt /', /invalid chmod parameter: 'u~x'/],
  ['COPY a.txt nope /x/', /failed to calculate checksum of ref \S+: "\/nope": not found/],
  ['COPY https://example.invalid/x.git /', /source can't be a git ref for COPY/],
  ['COPY a.txt <<EOF\nEOF', /COPY cannot accept a heredoc as a destination/],
  ['COPY <<EOF /x', /2 \| >>> COPY <<EOF \/x[^]*unterminated heredoc/],
  ['RUNN true', /unknown instruction: RUNN \(did you mean RUN\?\)/],
  ['RUN --security=insecure true', /security.insecure is not allowed/],
  ['RUN --network=lan true', /invalid network mode "lan"/],
];

const SERVER = `
  require('node:http').createServer((request, response) => {
    try {
      response.end(require('node:fs').readFileSync(process.argv[1] + request.url.replace(/[?].*/, '')));
    } catch { response.writeHead(404).end(); }
  }).listen(8080, '127.0.0.1', () => console.log('listens'));
`;

suite('COPY and ADD with flags', { skip: clients === undefined && 'its packages could not be fetched' }, () => {
  let engine: TestEngine;
  let project: Project;
  const servers: ChildProcess[] = [];
  before(async () => {
    engine = await TestEngine.start({ flags: ['--bridge=none'] });
    project = await Project.make(engine.socketPath);
  });
  after(async () => {
    for (const server of servers) await endProcess(server, 'SIGKILL');
    await project[Symbol.asyncDispose]();
    await engine[Symbol.asyncDispose]();
  });

  /** Files of a context, all of the same time. */
  const writeFiles = async (name: string): Promise<void> => {
    await project.write(Object.fromEntries(Object.entries(FILES).map(([path, text]) => [`${name}/${path}`, text])));
    await chmod(join(project.folder, name, 'run.sh'), 0o755);
    for (const path of [...Object.keys(FILES), ...FOLDERS]) await utimes(join(project.folder, name, path), TIME, TIME);
  };
  const list = async (image: string, at: string): Promise<string[]> => {
    const words = ['run', '--rm', image, 'find', at, '-exec', 'stat', '-c', '%a %u:%g %Y %n', '{}', '+'];
    return (await project.docker(words)).text.split('\n').filter(Boolean);
  };

  for (const [index, { lines, at, files }] of rows.entries()) {
    test(`${lines.join('; ').slice(0, 90)}: files, owners, modes and times`, async () => {
      const name = `row-${index}`;
      await writeFiles(name);
      const { code, text } = await project.build(
        name,
        { Dockerfile: `FROM busybox\n${lines.join('\n')}\n` },
        '--network=none',
      );
      assert.equal(code, 0, text);
      const listed = await list(name, at);
      // Folders that were made on the way have the time of the build.
      const made = new Set(files.map((line) => line.split(' ').at(-1)));
      assert.deepEqual(
        listed.filter((line) => made.has(line.split(' ').at(-1))).toSorted(),
        [...files].toSorted(),
        listed.join('\n'),
      );
      assert.ok(listed.length <= files.length + 2, listed.join('\n'));
    });
  }

  test('instructions that are refused say why', async () => {
    await writeFiles('refused');
    for (const [instruction, why] of refusals) {
      const { code, text } = await project.build(
        'refused',
        { Dockerfile: `FROM busybox\n${instruction}\n` },
        '--network=none',
      );
      assert.equal(code, 1, instruction);
      assert.match(text, why, instruction);
    }
  });

  test('a changed file that is left out leaves the step in the cache', async () => {
    const build = async (left: string, kept: string): Promise<string> => {
      const files = { Dockerfile: 'FROM busybox\nCOPY --exclude=*.log . /d/\n', 'x.log': left, y: kept };
      return (await project.build('cached', files, '--network=none')).text;
    };
    await build('1', '1');
    assert.match(await build('2', '1'), /COPY --exclude[^\n]*\n#\d+ CACHED/);
    assert.doesNotMatch(await build('2', '2'), /CACHED/);
  });

  test('ADD of addresses and repositories: checksums, archives, parts of a repository', async () => {
    const served = join(engine.directory, 'served');
    makeServed(served);
    const within = (...command: string[]): ChildProcess => {
      const server = spawn('nsenter', [`--net=${join(engine.directory, 'netns')}`, ...command]);
      servers.push(server);
      return server;
    };
    const web = within(process.execPath, '-e', SERVER, served);
    await new Promise((resolve) => void web.stdout!.once('data', resolve));
    const commit = execFileSync('git', ['rev-parse', 'HEAD'], { cwd: join(served, 'r.git'), encoding: 'utf8' }).trim();
    const sum = createHash('sha256').update('plain').digest('hex');
    const address = 'http://127.0.0.1:8080';
    const lines = [
      `ADD --checksum=sha256:${sum} ${address}/plain /one/`,
      `ADD --chmod=644 ${address}/plain /two/name`,
      `ADD --unpack ${address}/files.tar /three/`,
      `ADD ${address}/files.tar /four/`,
      `ADD ${address}/r.git /five`,
      `ADD --keep-git-dir ${address}/r.git#other:inner /six`,
      `ADD ${address}/r.git?branch=other&subdir=inner /seven`,
      `ADD --checksum=${commit} ${address}/r.git /eight`,
      'RUN cat /one/plain /two/name /three/in /five/first /six/second /seven/second /eight/first > /all',
      'RUN test ! -e /four/in && test ! -e /five/.git && test "$(stat -c %a /one/plain)" = 600',
    ];
    const { code, text } = await project.build(
      'added',
      { Dockerfile: `FROM busybox\n${lines.join('\n')}\n` },
      '--network=none',
    );
    assert.equal(code, 0, text);
    const shown = await project.docker(['run', '--rm', 'added', 'cat', '/all']);
    assert.equal(shown.text, 'plainplainarchived1\n2\n2\n1\n');
    for (const [flags, listed] of [
      [[], '/x/first\n'],
      [['--build-arg', 'BUILDKIT_CONTEXT_KEEP_GIT_DIR=1'], '/x/.git\n/x/first\n'],
    ] as const) {
      const file = 'FROM busybox\nCOPY . /x\nRUN ls -d /x/.git /x/* >/listed 2>/dev/null || true\n';
      const words = ['build', '-q', '-t', 'context', '--network=none', ...flags, '-f', '-', `${address}/r.git`];
      const built = await project.docker(words, file);
      assert.equal(built.code, 0, built.text);
      assert.equal((await project.docker(['run', '--rm', 'context', 'cat', '/listed'])).text, listed);
    }
    for (const [line, why] of [
      [`ADD --checksum=sha256:${'0'.repeat(64)} ${address}/plain /`, /digest mismatch sha256:\w+: sha256:0000/],
      [`ADD --checksum=${'1'.repeat(40)} ${address}/r.git /`, /expected checksum to match 1{40}, got /],
      [`ADD ${address}/r.git?depth=1 /`, /unexpected query "depth"/],
      ['ADD git@127.0.0.1:r.git /', /only http, https and git are supported/],
    ] as const) {
      const refused = await project.build('added', { Dockerfile: `FROM busybox\n${line}\n` });
      assert.match(refused.text, why);
    }
  });
});

/** A plain file, an archive, and a repository with two branches, as a plain web server serves it. */
function makeServed(folder: string): void {
  const work = join(folder, 'work');
  mkdirSync(join(work, 'inner'), { recursive: true });
  writeFileSync(join(folder, 'plain'), 'plain');
  writeFileSync(join(folder, 'in'), 'archived');
  execFileSync('tar', ['-cf', join(folder, 'files.tar'), '-C', folder, 'in']);
  const git = (...words: string[]): void => {
    const identity = ['-c', 'user.name=x', '-c', 'user.email=x@y'];
    execFileSync('git', [...identity, ...words], { cwd: work, stdio: 'ignore' });
  };
  git('init', '-b', 'main');
  writeFileSync(join(work, 'first'), '1\n');
  git('add', '.');
  git('commit', '-m', 'x');
  git('checkout', '-b', 'other');
  writeFileSync(join(work, 'inner/second'), '2\n');
  git('add', '.');
  git('commit', '-m', 'y');
  git('checkout', 'main');
  git('clone', '--bare', '.', join(folder, 'r.git'));
  execFileSync('git', ['update-server-info'], { cwd: join(folder, 'r.git') });
}
