import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { promisify } from 'node:util';

import { tarList } from '@gantry/testing/archives/tar-list.ts';
import { TarWriter } from '@gantry/testing/archives/tar-writer.ts';
import { busyboxLayer, imageArchive } from '@gantry/testing/busybox-image.ts';
import { ownClient } from '@gantry/testing/clients/own-client.ts';

import { BothEngines, normalised, type Said, type Side } from '../both-engines.ts';
import { COPIES, type CopyRow } from './copy-rows.ts';

const execute = promisify(execFile);

/** Each in a folder of its own, which the image has: `a`, `b` (files), `d/one`, `d/two`, `d/sub/deep`, `l` (a link), `e` (empty). */
const OPERATIONS: readonly string[] = [
  ':',
  'echo x >new',
  'echo x >>a',
  'chmod 600 a',
  'chown 5:6 a',
  'touch a',
  'rm a',
  'rm a b',
  'mv a c',
  'rm a; echo other >a',
  'rm a; mkdir a',
  'rm a; mkdir a; echo x >a/x',
  'rm a; ln -s b a',
  'rm l; echo file >l',
  'ln -sf b l',
  'ln a hard',
  'ln -s a soft',
  'mkdir new',
  'mkdir -p new/er/est',
  'mkdir new; echo x >new/x; rm -r new',
  'echo x >d/new',
  'echo x >>d/one',
  'rm d/one',
  'rm d/sub/deep',
  'echo x >>d/sub/deep',
  'rm -r d',
  'rm -r d; echo file >d',
  'rm -r e; ln -s d e',
  'rmdir e',
  'rmdir e; mkdir e',
  'chmod 700 d',
  'touch -d @1000000000 d',
  'chmod 700 d/sub',
  'mkfifo fifo',
  'mknod null c 1 3',
  'mknod zero c 0 0 2>/dev/null; rm -f zero',
  'cp -a d copy',
  'echo x >"a name with blanks and ü"',
  'echo x >d/sub/.hidden; rm d/two',
  'cat a >/dev/null; ls -R . >/dev/null',
  'mv a b',
  'chown 5:6 d',
  'rm -r d; mkdir d',
  'rm -r d; mkdir d; echo x >d/three',
  'rm -r d; mkdir -p d/sub; echo x >d/one',
  'rm -r d/sub; mkdir d/sub; chmod 755 d/sub',
];

function layerOfFolders(names: readonly string[]): Buffer {
  const tar = new TarWriter();
  for (const name of names) {
    for (const folder of ['', 'd/', 'd/sub/', 'e/']) tar.add({ name: `${name}/${folder}`, type: 'directory' });
    for (const file of ['a', 'b', 'd/one', 'd/two', 'd/sub/deep']) tar.add({ name: `${name}/${file}`, content: file });
    tar.add({ name: `${name}/l`, type: 'symlink', linkName: 'a' });
  }
  return tar.end();
}

type Change = { Path: string; Kind: number };

async function changesOf({ api }: Side, id: string): Promise<string[]> {
  const { status, body } = await api.get<Change[] | null>(`/containers/${id}/changes`);
  assert.equal(status, 200);
  return (body ?? []).map(({ Path, Kind }) => `${'CAD'[Kind]} ${Path}`).toSorted();
}

suite('files of containers, asked of both engines', { concurrency: false }, () => {
  let engines: BothEngines;
  const folders = OPERATIONS.map((_, index) => `o${index}`);
  before(async () => {
    engines = await BothEngines.start();
    const layers = [busyboxLayer(), layerOfFolders(folders)];
    await engines.both(
      async ({ api }) => await api.post('/images/load?quiet=1', imageArchive(layers, ['folders:latest'])),
    );
  });
  const copiers = new Map<Side['name'], string>();
  before(async () => {
    const folders = ['w', 'own'].flatMap((prefix) =>
      COPIES.map(({ inside = ':' }, index) => `mkdir /${prefix}${index}; (cd /${prefix}${index}; ${inside})`),
    );
    await engines.both(async (side) => {
      const id = await run(side, [...folders, 'mkdir /ready; sleep 1000'].join('\n'));
      copiers.set(side.name, id);
      while (!(await changesOf(side, id)).includes('A /ready'));
    });
  });
  after(async () => await engines[Symbol.asyncDispose]());

  async function make(side: Side, body: object): Promise<string> {
    const { status, body: made, raw } = await side.api.post<{ Id: string }>('/containers/create', body);
    assert.equal(status, 201, raw.toString());
    return made.Id;
  }

  async function run(side: Side, script: string, body: object = {}): Promise<string> {
    const id = await make(side, { Image: 'folders', Cmd: ['sh', '-c', script], ...body });
    assert.equal((await side.api.post(`/containers/${id}/start`)).status, 204);
    return id;
  }

  test('the same operations are told as the same changes', async () => {
    const script = OPERATIONS.map((operation, index) => `(cd /o${index}; ${operation})`).join('\n');
    const { ours, theirs } = await engines.both(async (side) => {
      const id = await run(side, script);
      await side.api.post(`/containers/${id}/wait`);
      return await changesOf(side, id);
    });
    const told = (list: readonly string[], index: number): string[] =>
      list.filter((line) => line.slice(2) === `/o${index}` || line.slice(2).startsWith(`/o${index}/`));

    for (const [index, operation] of OPERATIONS.entries()) {
      assert.deepEqual(told(ours, index), told(theirs, index), operation);
    }
    assert.deepEqual(
      ours.filter((line) => !/^. \/o\d/.test(line)),
      theirs.filter((line) => !/^. \/o\d/.test(line)),
    );
  });

  test('mounts and the mount points of every container are told alike, running or not', async () => {
    const script = 'echo x >/etc/mine; echo x >/v/x; echo x >/dev/shm/x; echo ready; sleep 1000';
    const body = { HostConfig: { Binds: ['files:/v', 'more:/etc/deep/w'], Tmpfs: { '/tf': '' } }, Tty: true };
    const { ours, theirs } = await engines.both(async (side) => {
      const id = await run(side, script, body);
      while (!(await changesOf(side, id)).includes('A /etc/mine'));
      const running = await changesOf(side, id);
      const untouched = await run(side, 'true');
      await side.api.post(`/containers/${untouched}/wait`);
      await side.api.post(`/containers/${id}/kill`);
      const never = await make(side, { Image: 'busybox' });
      return [running, await changesOf(side, id), await changesOf(side, untouched), await changesOf(side, never)];
    });

    assert.deepEqual(ours, theirs);
    assert.deepEqual(ours.slice(2), [[], []]);
  });

  test('an export has the same entries', async () => {
    const script = 'mkdir -p /x/y; echo hello >/x/f; ln /x/f /x/g; mkfifo /x/p; ln -s f /x/l; echo v >/v/f; sleep 1000';
    const { ours, theirs } = await engines.both(async (side) => {
      const id = await run(side, script, { HostConfig: { Binds: ['exported:/v'] } });
      while (!(await changesOf(side, id)).includes('A /x/l'));
      const { status, raw, headers } = await side.api.get(`/containers/${id}/export`);
      assert.deepEqual([status, headers['content-type']], [200, 'application/octet-stream']);
      const entries = [...tarList(raw).values()];
      return entries
        .filter(({ path }) => !/^(dev\/|etc\/mtab$)/.test(path)) // of dockerd's own layer
        .map(({ path, type, mode, uid, gid, sizeBytes, linkPath }) => {
          return [path, type, path === 'v/' || path.startsWith('etc/') ? 0 : mode, uid, gid, sizeBytes, linkPath].join(
            ' ',
          );
        });
    });

    assert.deepEqual(ours, theirs);
  });

  /** With our engine. */
  const byDocker = new Map<CopyRow, Copied>();
  for (const [index, row] of COPIES.entries()) {
    test(`docker cp: ${row.why}`, async () => {
      const { ours, theirs } = await engines.both(async (side) => await copied(side, row, `w${index}`));

      assert.deepEqual(ours, row.differs ?? theirs);
      byDocker.set(row, ours);
    });
  }

  for (const [index, row] of COPIES.entries()) {
    test(`gantry cp: ${row.why}`, async () => {
      const { code, here, inside, stdout } = await copied(engines.ours, row, `own${index}`, gantryCp);
      const theirs = byDocker.get(row)!;

      const { stderr: _said, ...expected } = theirs;
      assert.deepEqual({ code, here, inside, stdout }, expected);
    });
  }

  /** Output of the command, and the files afterwards. */
  async function copied(side: Side, row: CopyRow, folder: string, program = dockerCp): Promise<Copied> {
    const id = copiers.get(side.name)!;
    const here = join(side.directory, folder);
    await mkdir(here);
    await execute('sh', ['-c', row.here ?? ':'], { cwd: here });
    const words = row.words.map((word) => word.replace('CTR:/w', `${id}:/${folder}`).replace('HERE', here));
    const said = await program(side, row.stdin ?? ':', words, here);
    const { stdout } = await execute('sh', ['-c', LIST], { cwd: here });
    const { raw } = await side.api.get(`/containers/${id}/archive?path=/${folder}/.`);
    return {
      code: said.code,
      stdout:
        row.isArchive === true
          ? [...tarList(Buffer.from(said.stdout, 'latin1')).keys()].map(shown)
          : shown(said.stdout),
      stderr: shown(
        normalised(side, said.stderr).replaceAll(/^time=.*(read\/write on closed pipe|broken pipe)"\n/gm, ''),
      ),
      here: stdout,
      inside: [...tarList(raw).values()].map(({ path, type, mode, uid, gid, linkPath, content }) =>
        [path, type, mode.toString(8), uid, gid, shown(linkPath), content.toString().trim()].join(' '),
      ),
    };

    function shown(text: string): string {
      return text.replaceAll(new RegExp(`\\b${folder}\\b`, 'g'), 'W');
    }
  }
});

const LIST = `find . | sort | while read f; do
  stat -c '%n %F %a' "$f"; [ -h "$f" ] && readlink "$f"; [ -f "$f" ] && cat "$f"
done; true`;

type Copied = { code: number; stdout: unknown; stderr: string; here: string; inside: string[] };

const dockerCp = async (side: Side, input: string, words: readonly string[], cwd: string): Promise<Said> =>
  await piped(`${input} | docker cp ${words.join(' ')}`, cwd, {
    DOCKER_API_VERSION: '1.24',
    DOCKER_HOST: `unix://${side.socketPath}`,
    DOCKER_CONFIG: join(side.directory, 'docker-config'),
  });

const gantryCp = async (side: Side, input: string, words: readonly string[], cwd: string): Promise<Said> =>
  await piped(`${input} | ${process.execPath} -- ${ownClient} cp ${words.join(' ')}`, cwd, {
    GANTRY_HOST: `unix://${side.socketPath}`,
  });

async function piped(command: string, cwd: string, variables: Record<string, string>): Promise<Said> {
  const env = { PATH: process.env.PATH, HOME: cwd, ...variables };
  try {
    return { code: 0, ...(await execute('sh', ['-c', command], { env, cwd })) };
  } catch (error) {
    const { code, stdout, stderr } = error as Said;
    return { code, stdout, stderr };
  }
}
