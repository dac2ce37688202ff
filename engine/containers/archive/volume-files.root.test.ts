import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';

import { TestEngine } from '@gantry/testing/test-engine.ts';

import type { FileList } from '../schema.ts';

suite('files of volumes', { concurrency: false }, () => {
  let engine: TestEngine;
  before(async () => {
    engine = await TestEngine.start({ version: '1.51' });
    const script = [
      'mkdir /v/inner && printf hello >/v/file && printf deep >/v/inner/deep',
      'ln -s / /v/root && ln -s /inner /v/short && ln -s ../../../../../etc /v/out',
    ];
    const id = await engine.run(['sh', '-c', script.join(' && ')], { HostConfig: { Binds: ['kept:/v'] } });
    assert.equal(await engine.wait(id), 0);
    await engine.delete(`/containers/${id}`);
  });
  after(async () => await engine[Symbol.asyncDispose]());

  const list = async (path: string, name = 'kept'): Promise<{ status: number; body: FileList }> =>
    await engine.get<FileList>(`/volumes/${name}/files?path=${encodeURIComponent(path)}`);
  const namesOf = ({ body }: { body: FileList }): string[] => body.Entries.map(({ Name }) => Name).toSorted();

  test('a volume without a container is listed and read, and its links stay in it', async () => {
    const [root, short, linked, out] = [await list('/'), await list('/short'), await list('/root'), await list('/out')];
    const archive = await engine.get('/volumes/kept/archive?path=/inner');

    assert.deepEqual(namesOf(root), ['file', 'inner', 'out', 'root', 'short']);
    assert.deepEqual(namesOf(short), ['deep']);
    assert.deepEqual(namesOf(linked), namesOf(root));
    assert.equal(out.status, 404); // the volume has no /etc
    assert.equal(archive.status, 200);
    assert.ok(archive.raw.includes('inner/deep') && archive.raw.includes('deep\0'));
  });

  test('a file, a missing folder and a missing volume are refused by name', async () => {
    const answers = [await list('/file'), await list('/nowhere'), await list('/', 'nope')];

    assert.deepEqual(
      answers.map(({ status }) => status),
      [400, 404, 404],
    );
    const { message } = answers[1]!.body as unknown as { message: string };
    assert.equal(message, 'Could not find the file /nowhere in volume kept');
  });

  test('a volume that has files only while it is mounted is mounted for its reader, and removed afterwards', async () => {
    const DriverOpts = { type: 'tmpfs', device: 'tmpfs', o: 'size=1m' };
    await engine.post('/volumes/create', { Name: 'memory', DriverOpts });

    const root = await list('/', 'memory');
    const mounts = await engine.onHost(['cat', `/proc/${engine.pid}/mountinfo`]);
    const removed = await engine.delete('/volumes/memory');

    assert.deepEqual(namesOf(root), []);
    assert.doesNotMatch(mounts, /volumes\/memory/);
    assert.equal(removed.status, 204);
  });

  test('a volume is removed after its files were read', async () => {
    await engine.post('/volumes/create', { Name: 'read' });
    await list('/', 'read');

    assert.equal((await engine.delete('/volumes/read')).status, 204);
    assert.equal((await list('/', 'read')).status, 404);
  });
});
