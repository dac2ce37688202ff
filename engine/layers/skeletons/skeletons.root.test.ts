import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';

import { chooseImages, saveImages } from '@gantry/engine/images/archives/save.ts';
import { archiveSource } from '@gantry/engine/layers/archive-source.ts';
import { TarWriter, type TarEntry } from '@gantry/testing/archives/tar-writer.ts';
import { imageArchive } from '@gantry/testing/busybox-image.ts';
import { TestImages } from '@gantry/testing/test-images.ts';

const noise = randomBytes(300_000);
const archiveOf = (...entries: TarEntry[]): Buffer => {
  const tar = new TarWriter();
  for (const entry of entries) tar.add(entry);
  return tar.end();
};

/** Archive of a tool, of a folder with many kinds of files, larger than any chunk. */
function byTool(...flags: string[]): Buffer {
  const folder = mkdtempSync(join(tmpdir(), 'gantry-skeleton-'));
  try {
    const script = `mkdir -p a/b; head -c 700000 /dev/urandom > a/large; cp a/large 'a/b/${'n'.repeat(120)}'; ln a/large a/hard
      ln -s large a/soft; : > a/empty; mkfifo a/fifo; truncate -s 3M a/sparse; echo end >> a/sparse
      for i in $(seq 1 600); do echo $i > a/b/$i; done`;
    execFileSync('sh', ['-c', script], { cwd: folder });
    return execFileSync('tar', ['-c', ...flags, 'a'], { cwd: folder, maxBuffer: 2 ** 28 });
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Each chunk is valid until the next one. */
async function bytesOf(archive: AsyncIterable<Buffer>): Promise<Buffer> {
  return Buffer.concat(await Array.fromAsync(archive, (chunk) => Buffer.from(chunk)));
}

/** `gives`: whether the skeleton is enough; else the archive is kept. */
const archives: readonly (readonly [what: string, gives: boolean, archive: () => Buffer])[] = [
  ['of GNU tar', true, () => byTool('--format=gnu')],
  ['of GNU tar in the form pax', true, () => byTool('--format=pax')],
  ['with sparse files', true, () => byTool('--sparse', '--format=gnu')],
  ['with sparse files in the form pax', true, () => byTool('--sparse', '--format=pax')],
  [
    'with many bytes behind its end',
    true,
    () => Buffer.concat([archiveOf({ name: 'a', content: noise }), Buffer.alloc(90_000)]),
  ],
  ['with marks of removal', true, () => archiveOf({ name: '.wh.gone' }, { name: 'a', content: noise })],
  [
    'with a removal that has content',
    false,
    () => archiveOf({ name: '.wh.gone', content: 'x' }, { name: 'a', content: noise }),
  ],
  ['that has a file twice', false, () => archiveOf({ name: 'a', content: noise }, { name: 'a', content: 'other' })],
  [
    'that makes a device of a file',
    false,
    () => archiveOf({ name: 'a', content: noise }, { name: 'a', type: 'charDevice', major: 1, minor: 5 }),
  ],
  ['that makes a FIFO of a file', false, () => archiveOf({ name: 'a', content: noise }, { name: 'a', type: 'fifo' })],
  [
    'that makes a link that leads out of a file',
    false,
    () => archiveOf({ name: 'a', content: noise }, { name: 'a', type: 'symlink', linkName: '/etc/passwd' }),
  ],
  [
    'that writes through a link that is another one then',
    false,
    () =>
      archiveOf(
        { name: 'd/', type: 'directory' },
        { name: 'l', type: 'symlink', linkName: 'd' },
        { name: 'l/a', content: noise },
        { name: 'l', type: 'symlink', linkName: '/etc' },
      ),
  ],
  [
    'of random bytes in names',
    false,
    () =>
      archiveOf(...Array.from({ length: 300 }, (_, at) => ({ name: `${at}`, pax: { comment: randomBytes(1500) } }))),
  ],
];

for (const [what, gives, make] of archives) {
  test(`an archive ${what} is ${gives ? 'made again of its files' : 'kept whole'}, byte for byte`, async () => {
    const archive = make();
    await using engine = new TestImages();
    await engine.load(imageArchive([archive], ['a:1']));

    const layer = engine.layers.get(engine.images.find('a:1').layers[0]!)!;
    const source = archiveSource(engine, layer)!;
    assert.equal(source.kind, gives ? 'skeleton' : 'whole');
    assert.deepEqual(
      [existsSync(engine.blobs.path(layer.blob)), existsSync(engine.blobs.skeletonPath(layer.blob))],
      [!gives, gives],
    );
    assert.equal(layer.archiveBytes, archive.length);
    assert.ok((await bytesOf(engine.archives.read(source))).equals(archive));
  });
}

test('a loaded image costs the disk its files and little more, and so does a pulled one with its compressed archive', async () => {
  const folder = '/usr/lib/x86_64-linux-gnu/perl-base';
  const tar = execFileSync('tar', ['-c', '-C', folder, '.'], { maxBuffer: 2 ** 28 });
  const diskBytes = (folder: string): number =>
    Number(execFileSync('du', ['-s', '-B1', folder], { encoding: 'utf8' }).split('\t')[0]);
  for (const [archive, most] of [
    [tar, 1.1],
    [gzipSync(tar), 1.4],
  ] as const) {
    await using engine = new TestImages();
    await engine.import(archive, 'a:1');
    await engine.layers.settled();

    const files = diskBytes(join(engine.layers.folders.directory, engine.layers.all()[0]!.folder));
    const all = diskBytes(engine.layers.folders.directory) + diskBytes(join(engine.directory, 'blobs'));
    assert.ok(all <= most * files, `${all} bytes for ${files} bytes of files`);
  }
});

test('a file of a layer that was changed breaks the archive off, and says so', async () => {
  await using engine = new TestImages();
  await engine.load(imageArchive([archiveOf({ name: 'a', content: noise }, { name: 'b', content: noise })], ['a:1']));
  const [layer] = engine.layers.all();
  const file = join(engine.layers.folders.directory, layer!.folder, 'a');
  const save = async (): Promise<Buffer> => await bytesOf(saveImages(engine, chooseImages(engine, ['a:1'])));

  await save();
  writeFileSync(file, Buffer.from(readFileSync(file)).fill(0, 1000, 1001));
  await assert.rejects(save(), /the files of a layer were changed/);
  writeFileSync(file, 'short');
  await assert.rejects(save(), /a file of a layer is too short/);
  rmSync(file);
  await assert.rejects(save(), { code: 'ENOENT' });
  for (const command of ['mkfifo', 'ln -s /etc/passwd', 'mkdir']) {
    execFileSync('sh', ['-c', `${command} "$1"`, 'sh', file]);
    await assert.rejects(save(), /not a plain file/, command);
    rmSync(file, { recursive: true });
  }
});

test('an abandoned archive read frees its worker thread', async () => {
  await using engine = new TestImages();
  await engine.load(imageArchive([archiveOf({ name: 'a', content: randomBytes(5_000_000) })], ['a:1']));
  const source = archiveSource(engine, engine.layers.all()[0]!)!;

  for (let time = 0; time < 20; time += 1) for await (const _ of engine.archives.read(source)) break;

  const all = await bytesOf(engine.archives.read(source));
  assert.equal(all.length, engine.layers.all()[0]!.archiveBytes);
});
