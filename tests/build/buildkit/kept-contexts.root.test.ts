import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { promisify } from 'node:util';

import { TestEngine } from '@gantry/testing/test-engine.ts';

import { clients, Project } from './project.ts';

const PORT = 2375;
const FILE = 'FROM busybox\nCOPY . /all/\n';
const LARGE = 3_000_000;

suite('contexts for the next build', { skip: clients === undefined && 'its packages could not be fetched' }, () => {
  let engine: TestEngine;
  let project: Project;
  before(async () => {
    engine = await TestEngine.start({ flags: ['--bridge=none', '--insecure-tcp', `--host=tcp://0.0.0.0:${PORT}`] });
    project = await Project.make(engine.socketPath);
  });
  after(async () => {
    await project[Symbol.asyncDispose]();
    await engine[Symbol.asyncDispose]();
  });

  const files = (letter: string): Record<string, string> => ({
    Dockerfile: FILE,
    large: letter.repeat(LARGE),
    ...Object.fromEntries(Array.from({ length: 200 }, (_, at) => [`sub.${at % 3}/f${at}`, `content ${at}`])),
  });
  const outputOf = async (name: string, ...command: string[]): Promise<string> =>
    (await project.docker(['run', '--rm', '--network=none', name, ...command])).text;

  test('a changed file is sent again, alone', async () => {
    const first = await project.build('kept', files('a'));
    assert.equal(first.code, 0, first.text);
    assert.ok(sentBytes(first.text) > LARGE, first.text);

    const unchanged = await project.build('kept', {}, '--no-cache');
    assert.equal(unchanged.code, 0, unchanged.text);
    assert.ok(sentBytes(unchanged.text) < 100_000, unchanged.text);
    const known = await outputOf('kept', 'sh', '-c', 'cat /all/sub.1/f1 /all/sub.2/f197; wc -c < /all/large; ls /all');
    assert.equal(known, `content 1content 197${LARGE}\nDockerfile\nlarge\nsub.0\nsub.1\nsub.2\n`);

    await rm(join(project.folder, 'kept/sub.1'), { recursive: true });
    const changed = await project.build('kept', { 'sub.0/f0': 'changed', new: 'new' });
    assert.equal(changed.code, 0, changed.text);
    assert.ok(sentBytes(changed.text) < 100_000, changed.text);
    const script =
      'cat /all/new /all/sub.0/f0 /all/sub.2/f197; ls /all; wc -c < /all/large; tr -d a < /all/large | wc -c';
    assert.equal(
      await outputOf('kept', 'sh', '-c', script),
      `newchangedcontent 197Dockerfile\nlarge\nnew\nsub.0\nsub.2\n${LARGE}\n0\n`,
    );
  });

  test('each build has the files of the folder as they are, whatever has changed', async () => {
    await project.write({ 'any/Dockerfile': 'FROM scratch\nCOPY . /all/\nCOPY in /in/\nCOPY a in/b /some/\n' });
    const large = { 'any/a': 'a', 'any/in/b': 'b', 'any/in/deep/c': 'c', 'any/large': 'l'.repeat(LARGE) };
    const changes = [
      ...[
        'true',
        'echo changed >a',
        'rm in/deep/c',
        'rm -r in/deep && echo file >in/deep',
        'rm in/deep && mkdir in/deep',
      ],
      ...[
        'ln a in/name && echo more >>a',
        'ln -s a in/deep/link',
        'rm a && mkdir a && echo x >a/x',
        'touch -d @1 large',
      ],
      ...[
        'rm -r a && mkfifo pipe && echo again >a',
        'chmod 700 in/b',
        'echo l >>large',
        'mv in up && mkdir in && mv up/b in/b',
      ],
      ...[
        "echo large >.dockerignore && printf '!/in\\n' >>.dockerignore",
        'rm .dockerignore',
        'touch "$(printf \'a\\tb ö\')"',
      ],
    ];
    await project.write(large);
    for (const change of changes) {
      const cwd = join(project.folder, 'any');
      await promisify(execFile)('sh', ['-c', change], { cwd });

      const { code, text } = await project.docker(['build', '--progress=plain', '--output=out', 'any']);

      assert.equal(code, 0, `${change}: ${text}`);
      const list =
        'find . -mindepth 1 ! -name "*.d" -printf "%y %m %s %p %l\\n" | grep -v "^d" | sort; cat in/b a/x a in/name || true';
      const seen = async (folder: string): Promise<string> =>
        (await promisify(execFile)('sh', ['-c', `${list} 2>&1`], { cwd: folder })).stdout;
      const wanted = (await seen(cwd))
        .split('\n')
        .filter((line) => !change.includes('.dockerignore &&') || !line.includes(' ./large'));
      assert.deepEqual((await seen(join(project.folder, 'out/all'))).split('\n'), wanted, change);
      await rm(join(project.folder, 'out'), { recursive: true });
    }
  });

  test('a client at another address gets none of it', async () => {
    await project.write(Object.fromEntries(Object.entries(files('b')).map(([name, text]) => [`own/${name}`, text])));
    for (const address of ['10.9.9.1', '10.9.9.2'])
      await engine.onHost(['ip', 'address', 'add', `${address}/32`, 'dev', 'lo']);
    const buildFrom = async (address: string): Promise<number> => {
      const words = ['-H', `tcp://${address}:${PORT}`, 'build', '--progress', 'plain', '--no-cache', '.'];
      const { stderr } = await promisify(execFile)('nsenter', [`--net=${engine.netns}`, clients!.docker, ...words], {
        cwd: join(project.folder, 'own'),
        env: { ...process.env, DOCKER_CONFIG: join(project.folder, '.config') },
      });
      return sentBytes(stderr);
    };

    assert.ok((await buildFrom('10.9.9.1')) > LARGE);
    assert.ok((await buildFrom('10.9.9.1')) < 100_000);
    assert.ok((await buildFrom('10.9.9.2')) > LARGE);
  });

  test('two builds at once of one folder both have its files', async () => {
    assert.equal((await project.build('twice', files('c'))).code, 0);
    await project.write({ 'twice/changed': 'now' });

    const [one, other] = await Promise.all(
      ['twice-1', 'twice-2'].map(
        async (tag) => await project.docker(['build', '--progress', 'plain', '--no-cache', '-t', tag, 'twice']),
      ),
    );

    for (const { code, text } of [one!, other!]) assert.equal(code, 0, text);
    const script = 'cat /all/changed /all/sub.2/f197; tr -d c < /all/large | wc -c';
    for (const tag of ['twice-1', 'twice-2'])
      assert.equal(await outputOf(tag, 'sh', '-c', script), 'nowcontent 1970\n');
  });

  test('prune removes them, and the next build sends all', async () => {
    assert.equal((await project.build('pruned', files('d'))).code, 0);
    assert.match((await project.docker(['buildx', 'du', '--verbose'])).text, /Type:\s+source\.local/);
    const kept = await project.docker(['buildx', 'prune', '-f', '--filter', 'until=1h']);
    assert.match(kept.text, /Total:\s+0B/);
    assert.match((await project.docker(['buildx', 'prune', '-f'])).text, /Total:\s+[1-9]/);
    assert.match((await project.docker(['buildx', 'du'])).text, /Total:\s+0B/);

    const { text } = await project.build('pruned', {}, '--no-cache');

    assert.ok(sentBytes(text) > LARGE, text);
  });
});

/** The bytes of the context that a client says it has sent. */
function sentBytes(text: string): number {
  const sizes = [...text.matchAll(/load build context[^]*?transferring context: ([\d.]+)(B|kB|MB)/g)];
  assert.ok(sizes.length > 0, text);
  const all = [...text.matchAll(/transferring context: ([\d.]+)(B|kB|MB)/g)];
  return Math.max(...all.map(([, number, unit]) => Number(number) * { B: 1, kB: 1e3, MB: 1e6 }[unit as 'B']));
}
