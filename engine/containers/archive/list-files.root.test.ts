import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';

import { eventually } from '@gantry/testing/eventually.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

import type { FileList } from '../schema.ts';

suite('GET /containers/{id}/files', { concurrency: false }, () => {
  let engine: TestEngine;
  let id: string;
  before(async () => {
    engine = await TestEngine.start({ version: '1.51' });
    const script = [
      'mkdir -p /d/inner && printf hello >/d/file && chmod 640 /d/file && chown 7:8 /d/file',
      'ln -s inner /d/link && ln -s /d/loop /d/loop && mkfifo /d/pipe && ln -s /d /short',
      'touch -d @253402300800 /d/late; mkdir /many && cd /many && seq 100000 | xargs touch; echo ready; sleep 1000',
    ];
    id = await engine.run(['sh', '-c', script.join('; ')], { HostConfig: { Binds: ['kept:/d/volume'] } });
    await eventually('the files are made', async () => (await engine.output(id)).stdout.includes('ready'));
  });
  after(async () => await engine[Symbol.asyncDispose]());

  const list = async (path: string): Promise<{ status: number; body: FileList }> =>
    await engine.get<FileList>(`/containers/${id}/files?path=${encodeURIComponent(path)}`);

  test('the entries of a folder have their types, owners and modes, and those of a mount are there too', async () => {
    const { body } = await list('/d/./inner/..');

    const types = new Map(body.Entries.map(({ Name, Type }) => [Name, Type]));
    assert.equal(body.Path, '/d');
    assert.equal(body.Truncated, false);
    types.delete('late');
    assert.deepEqual(Object.fromEntries(types), {
      file: 'file',
      inner: 'directory',
      link: 'symlink',
      loop: 'symlink',
      pipe: 'fifo',
      volume: 'directory',
    });
    const { Modified: _time, ...file } = body.Entries.find(({ Name }) => Name === 'file')!;
    assert.deepEqual(file, { Name: 'file', Type: 'file', Mode: 0o640, Size: 5, UID: 7, GID: 8, Target: '' });
    assert.equal(body.Entries.find(({ Name }) => Name === 'link')?.Target, 'inner');
  });

  test('a link to a folder is followed, and never out of the container', async () => {
    const [through, above] = [await list('/short/inner/../'), await list('../../../d')];

    assert.equal(through.status, 200);
    assert.equal(above.body.Path, '/d');
  });

  test('a circle of links and a file are 400, a missing folder is 404', async () => {
    const statuses = [await list('/d/loop'), await list('/d/file'), await list('/d/nothing'), await list('/d/file/x')];

    assert.deepEqual(
      statuses.map(({ status }) => status),
      [400, 400, 404, 404],
    );
  });

  test('of 100,000 files 10,000 are listed, with the mark that others were left out', async () => {
    const { body } = await list('/many');

    assert.equal(body.Entries.length, 10_000);
    assert.equal(body.Truncated, true);
  });

  test('a stopped container shows its files', async () => {
    const stopped = await engine.run(['touch', '/left'], {});
    await engine.wait(stopped);

    const { body } = await engine.get<FileList>(`/containers/${stopped}/files`);

    assert.ok(body.Entries.some(({ Name }) => Name === 'left'));
  });
});
