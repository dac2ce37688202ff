import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  closeSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
  writeSync,
  utimesSync,
  chownSync,
  chmodSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import { TarWriter, type TarEntry } from '@gantry/testing/archives/tar-writer.ts';
import { getXattr, setXattr } from '@gantry/testing/archives/xattr.ts';

import { LayerExtractor } from './extract.ts';
import { DEFAULT_LIMITS, TarReader, type ArchiveLimits } from './tar-reader.ts';

const OPAQUE = 'trusted.overlay.opaque';

/** A folder with `in/` to extract into, and `outside`, which must stay unchanged. */
class Place implements Disposable {
  readonly path = mkdtempSync(join(tmpdir(), 'gantry-extract-'));
  readonly inside = join(this.path, 'in');
  readonly outside = join(this.path, 'outside');

  constructor() {
    mkdirSync(this.inside);
    mkdirSync(this.outside);
    writeFileSync(join(this.outside, 'precious'), 'untouched', { mode: 0o640 });
  }

  /** Splits into pieces at arbitrary places, so that every state of the reader is interrupted somewhere. */
  extract(archive: Buffer, { limits = DEFAULT_LIMITS, lower = [], pieceBytes = 1000 }: Options = {}): number {
    using extractor = new LayerExtractor(this.inside);
    const reader = new TarReader(extractor, limits);
    for (let at = 0; at < archive.length; at += pieceBytes) reader.push(archive.subarray(at, at + pieceBytes));
    reader.end();
    extractor.complete(lower);
    return extractor.sizeBytes;
  }

  in(name: string): string {
    return join(this.inside, name);
  }

  [Symbol.dispose](): void {
    rmSync(this.path, { recursive: true, force: true });
  }
}

type Options = { limits?: ArchiveLimits; lower?: readonly string[]; pieceBytes?: number };

function archiveOf(...entries: TarEntry[]): Buffer {
  const tar = new TarWriter();
  for (const entry of entries) tar.add(entry);
  return tar.end();
}

const refused: readonly (readonly [what: string, archive: () => Buffer, message: RegExp])[] = [
  ['a name that climbs', () => archiveOf({ name: '../outside/new' }), /leads out of the root/],
  ['a name that climbs in the middle', () => archiveOf({ name: 'a/../../outside/new' }), /leads out of the root/],
  ['a file without a name', () => archiveOf({ name: '' }), /root is not a directory/],
  ['a name that climbs to a file of the root', () => archiveOf({ name: 'a/..' }), /root is not a directory/],
  [
    'a file through a relative link that climbs above the root',
    () =>
      archiveOf(
        { name: 'a/b', type: 'symlink', linkName: '../../outside' },
        { name: 'a/b/gantry-never', content: 'x' },
      ),
    /below something that is not a folder/,
  ],
  ['a link to nowhere', () => archiveOf({ name: 'a', type: 'symlink', linkName: '' }), /the link "a" has no target/],
  [
    'a hard link to a folder',
    () => archiveOf({ name: 'a/', type: 'directory' }, { name: 'b', type: 'link', linkName: 'a' }),
    /a link to "a", which is a folder/,
  ],
  [
    'a major device number that is too large',
    () => archiveOf({ name: 'a', type: 'charDevice', major: 4096, minor: 0 }),
    /has the device number 4096:0/,
  ],
  [
    'a minor device number that is too large',
    () => archiveOf({ name: 'a', type: 'blockDevice', major: 1, minor: 2 ** 20 }),
    /has the device number 1:1048576/,
  ],
  [
    'an extended attribute that is too long',
    () => archiveOf({ name: 'a', pax: { 'SCHILY.xattr.user.a': 'x'.repeat(70_000) } }),
    /the attribute "user\.a" of "a" is too long or badly named/,
  ],
  [
    'an extended attribute with too long a name',
    () => archiveOf({ name: 'a', pax: { [`SCHILY.xattr.user.${'n'.repeat(300)}`]: 'x' } }),
    /the attribute "user\.n+" of "a" is too long or badly named/,
  ],
  [
    'an extended attribute with half a name',
    () => archiveOf({ name: 'a', pax: { 'SCHILY.xattr.user.': 'x' } }),
    /the attribute "user\." of "a" is too long or badly named/,
  ],
  [
    'a hard link that leads out',
    () => archiveOf({ name: 'a', type: 'link', linkName: '../outside/precious' }),
    /leads out of the root/,
  ],
  [
    'an absolute hard link to nothing',
    () => archiveOf({ name: 'a', type: 'link', linkName: '/etc/passwd' }),
    /a link to "\/etc\/passwd", which does not exist/,
  ],
  [
    'a hard link to the root',
    () => archiveOf({ name: 'a', type: 'link', linkName: '/' }),
    /a link to "\/", which is a folder/,
  ],
  [
    'a hard link to nothing',
    () => archiveOf({ name: 'a', type: 'link', linkName: 'b' }),
    /a link to "b", which does not exist/,
  ],
  [
    'a file through an absolute link',
    () => archiveOf({ name: 'a', type: 'symlink', linkName: '/tmp' }, { name: 'a/gantry-never', content: 'x' }),
    /below something that is not a folder/,
  ],
  [
    'a hard link through an absolute link',
    () =>
      archiveOf({ name: 'a', type: 'symlink', linkName: '/etc' }, { name: 'b', type: 'link', linkName: 'a/passwd' }),
    /a link to "a\/passwd", which does not exist/,
  ],
  [
    'a whiteout through an absolute link',
    () => archiveOf({ name: 'a', type: 'symlink', linkName: '/tmp' }, { name: 'a/.wh.gantry-never' }),
    /below something that is not a folder/,
  ],
  [
    'an opaque mark through an absolute link',
    () => archiveOf({ name: 'a', type: 'symlink', linkName: '/tmp' }, { name: 'a/.wh..wh..opq' }),
    /below something that is not a folder/,
  ],
  ['a whiteout of the folder above', () => archiveOf({ name: '.wh...' }), /removes nothing/],
  [
    'a link in a circle',
    () => archiveOf({ name: 'a', type: 'symlink', linkName: 'a' }, { name: 'a/b' }),
    /through a link/,
  ],
  ['a file below a file', () => archiveOf({ name: 'a' }, { name: 'a/b' }), /below something that is not a folder/],
  ['a root that is a file', () => archiveOf({ name: './', type: 'symlink', linkName: 'x' }), /root is not a directory/],
  ['an unknown type', () => archiveOf({ name: 'a', damage: retyped('!') }), /unknown type/],
  ['a wrong checksum', () => archiveOf({ name: 'a', damage: (header) => header.write('b', 0) }), /wrong checksum/],
  ['a negative size', () => archiveOf({ name: 'a', damage: withSize('\u{ff}'.repeat(12)) }), /negative size/],
  [
    'a size beyond all numbers',
    () => archiveOf({ name: 'a', damage: withSize(`\u{80}\u{7f}${'\u{ff}'.repeat(10)}`) }),
    /invalid size/,
  ],
  ['a size that is no number', () => archiveOf({ name: 'a', damage: withSize('zzzzzzzzzzz\0') }), /invalid size/],
  ['text instead of an archive', () => Buffer.from('this is not a tar archive'.repeat(100)), /wrong checksum/],
  ['a few bytes', () => Buffer.from('garbage'), /ends in the middle/],
  ['half a header', () => archiveOf({ name: 'a' }).subarray(0, 300), /ends in the middle/],
  ['half a file', () => archiveOf({ name: 'a', content: 'x'.repeat(3000) }).subarray(0, 1500), /ends in the middle/],
  [
    'a header that belongs to nothing',
    () => new TarWriter().add({ name: 'p', type: 'pax', content: '' }).end(),
    /ends in the middle/,
  ],
  ['half an end mark', () => Buffer.concat([Buffer.alloc(512), archiveOf({ name: 'a' })]), /half of an end mark/],
  [
    'a huge extended header',
    () => archiveOf({ name: 'p', type: 'pax', size: 2 * 1024 * 1024 }, { name: 'a' }),
    /extended header has 2097152 bytes/,
  ],
  ['a huge long name', () => archiveOf({ name: 'p', type: 'longName', size: 1e9 }), /extended header has/],
  [
    'a pax record longer than its header',
    () => archiveOf({ name: 'p', type: 'pax', content: '99 path=a\n' }),
    /record is truncated/,
  ],
  ['a pax record without a value', () => archiveOf({ name: 'p', type: 'pax', content: '8 patha\n' }), /no value/],
  ['a pax size that is negative', () => archiveOf({ name: 'a', pax: { size: '-1' } }), /invalid number/],
  ['a pax name with a zero byte', () => archiveOf({ name: 'a', pax: { path: 'a\0b' } }), /zero byte/],
  ['a pax name that climbs', () => archiveOf({ name: 'a', pax: { path: '../outside/x' } }), /leads out of the root/],
  ['an impossible owner', () => archiveOf({ name: 'a', pax: { uid: '4294967295' } }), /invalid owner/],
  ['a name that is too long', () => archiveOf({ name: 'n'.repeat(300) }), /too long/],
  [
    'a sparse map beyond the file',
    () => archiveOf({ name: 'a', content: 'abc', pax: { 'GNU.sparse.size': '2', 'GNU.sparse.map': '0,3' } }),
    /does not fit/,
  ],
  [
    'a sparse map out of order',
    () => archiveOf({ name: 'a', content: 'abcd', pax: { 'GNU.sparse.size': '99', 'GNU.sparse.map': '9,2,1,2' } }),
    /out of order/,
  ],
  [
    'a sparse file larger than any file',
    () => archiveOf({ name: 'a', pax: { 'GNU.sparse.size': '9007199254740991', 'GNU.sparse.map': '0,0' } }),
    /larger than a file can be/,
  ],
];

function retyped(flag: string): (header: Buffer) => void {
  return (header) => {
    header.write(flag, 156);
    sumUp(header);
  };
}

function withSize(bytes: string): (header: Buffer) => void {
  return (header) => {
    header.write(bytes, 124, 'latin1');
    sumUp(header);
  };
}

function sumUp(header: Buffer): void {
  header.write('        ', 148);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
}

for (const [what, archive, message] of refused) {
  test(`${what} is refused, and nothing outside is touched`, () => {
    using place = new Place();

    assert.throws(() => place.extract(archive()), { name: 'EngineError', kind: 'invalid', message });

    assert.deepEqual(readdirSync(place.path).toSorted(), ['in', 'outside']);
    assert.deepEqual(readdirSync(place.outside), ['precious']);
    assert.equal(readFileSync(join(place.outside, 'precious'), 'utf8'), 'untouched');
    assert.ok(!existsSync('/tmp/gantry-never'));
  });
}

test('a relative link that climbs above the root is kept as it is', () => {
  using place = new Place();

  place.extract(archiveOf({ name: 'a/b', type: 'symlink', linkName: '../../../etc/passwd' }));

  assert.equal(readlinkSync(place.in('a/b')), '../../../etc/passwd');
});

const lib: TarEntry = { name: 'usr/lib/', type: 'directory' };

const placed: readonly (readonly [what: string, entries: readonly TarEntry[], files: readonly string[]])[] = [
  ['an absolute name', [{ name: '/nix/store/', type: 'directory' }, { name: '/nix/store/a' }], ['nix/store/a']],
  ['an absolute name in folders without entries', [{ name: '//nix//store/a' }], ['nix/store/a']],
  ['a folder called /', [{ name: '/', type: 'directory', mode: 0o755 }, { name: 'a' }], ['a']],
  ['a folder without a name', [{ name: '', type: 'directory', mode: 0o755 }, { name: 'a' }], ['a']],
  ['`..` after an existing folder', [{ name: 'q/', type: 'directory' }, { name: 'q/../r' }], ['r']],
  ['`..` after a missing folder', [{ name: 'q/../r' }], ['r']],
  ['`..` in an absolute name', [{ name: '/../a/../../r' }], ['r']],
  ['an absolute hard link', [{ name: 'x/q' }, { name: 'x/r', type: 'link', linkName: '/x/q' }], ['x/q', 'x/r']],
  ['a hard link with `..`', [{ name: 'q' }, { name: 'r', type: 'link', linkName: 'x/../q' }], ['q', 'r']],
  [
    'a file behind an absolute link',
    [lib, { name: 'lib', type: 'symlink', linkName: '/usr/lib' }, { name: 'lib/q' }],
    ['usr/lib/q'],
  ],
  [
    'a file behind a link that climbs above the root',
    [lib, { name: 'a/b', type: 'symlink', linkName: '../../../usr/lib' }, { name: 'a/b/q' }],
    ['usr/lib/q'],
  ],
  [
    'a folder behind a link to the root',
    [{ name: 'a', type: 'symlink', linkName: '/' }, { name: 'a/tmp/', type: 'directory' }, { name: 'tmp/q' }],
    ['tmp/q'],
  ],
  [
    'a hard link to a file behind an absolute link',
    [
      { name: 'usr/lib/q' },
      { name: 'lib', type: 'symlink', linkName: '/usr/lib' },
      { name: 'r', type: 'link', linkName: 'lib/q' },
    ],
    ['r', 'usr/lib/q'],
  ],
  ['a device that removes an absolute name', [{ name: '/d/.wh.gone' }], ['d/gone']],
];

for (const [what, entries, files] of placed) {
  test(`${what} is extracted where a process in the root would find it`, () => {
    using place = new Place();

    place.extract(archiveOf(...entries));

    const found = execFileSync('find', ['.', '!', '-type', 'd', '!', '-type', 'l', '-printf', '%P\n'], {
      cwd: place.inside,
      encoding: 'utf8',
    });
    assert.deepEqual(found.trim().split('\n').toSorted(), files);
    assert.deepEqual(readdirSync(place.outside), ['precious']);
  });
}

test('a link in the place of a folder with two names leads no change of attributes out', () => {
  using place = new Place();
  const lower = join(place.path, 'lower');
  mkdirSync(join(lower, 'alias/x'), { recursive: true });
  mkdirSync(join(lower, 'usr/lib/x'), { recursive: true });
  for (const name of ['alias/x', 'usr/lib/x']) chmodSync(join(lower, name), 0o777);

  place.extract(
    archiveOf(
      lib,
      { name: 'alias', type: 'symlink', linkName: 'usr/lib' },
      { name: 'other', type: 'link', linkName: 'alias' },
      { name: 'alias/x/implied' },
      { name: 'other/x/implied' },
      { name: 'usr/lib/x', type: 'symlink', linkName: join(place.outside, 'precious') },
    ),
    { lower: [lower] },
  );

  assert.equal(statSync(join(place.outside, 'precious')).mode & 0o7777, 0o640);
});

test('a folder with two names is one folder: its mark, its times and its removal', () => {
  using place = new Place();

  place.extract(
    archiveOf(
      lib,
      { name: 'lib', type: 'symlink', linkName: '/usr/lib' },
      { name: 'lib/.wh.again' },
      { name: 'usr/lib/again/', type: 'directory' },
      { name: 'lib/gone/', type: 'directory', mtime: 1_000_000_000 },
      { name: 'usr/lib/gone', content: 'a file' },
      { name: 'lib/timed/', type: 'directory' },
      { name: 'usr/lib/timed/', type: 'directory', mtime: 1_000_000_000 },
      { name: 'lib', content: 'no link any more' },
    ),
  );

  assert.equal(getXattr(place.in('usr/lib/again'), OPAQUE)?.toString(), 'y');
  assert.equal(statSync(place.in('usr/lib/gone')).mtimeMs, 1_700_000_000_000);
  assert.equal(statSync(place.in('usr/lib/timed')).mtimeMs, 1_000_000_000_000);
  assert.equal(readFileSync(place.in('lib'), 'utf8'), 'no link any more');
});

test('an archive above the limits is refused as soon as they are reached', () => {
  const file = { content: Buffer.alloc(100_000) };
  const archive = archiveOf({ name: 'a', ...file }, { name: 'b', ...file }, { name: 'c', ...file });
  using place = new Place();

  assert.throws(
    () => place.extract(archive, { limits: { bytes: 150_000, entries: 10 } }),
    /more bytes than the limit of 150000/,
  );
  assert.throws(
    () => place.extract(archive, { limits: { bytes: 1e6, entries: 2 } }),
    /more entries than the limit of 2/,
  );
});

test('a link of the file system that stands in the folder already leads nowhere', () => {
  using place = new Place();
  symlinkSync(place.outside, place.in('way'));

  assert.throws(() => place.extract(archiveOf({ name: 'way/new', content: 'x' })), /not a folder/);

  assert.deepEqual(readdirSync(place.outside), ['precious']);
});

test('a link within the layer may be written through, as a file is replaced and not followed', () => {
  using place = new Place();

  place.extract(
    archiveOf(
      { name: 'usr/lib/', type: 'directory' },
      { name: 'lib', type: 'symlink', linkName: 'usr/lib' },
      { name: 'lib/a', content: 'first' },
      { name: 'b', type: 'symlink', linkName: 'usr/lib/a' },
      { name: 'b', content: 'second' },
    ),
  );

  assert.equal(readFileSync(place.in('usr/lib/a'), 'utf8'), 'first');
  assert.equal(readFileSync(place.in('b'), 'utf8'), 'second');
  assert.ok(lstatSync(place.in('b')).isFile());
});

test('everything an entry says arrives: owner, modes, times, links, nodes, attributes', () => {
  using place = new Place();
  const long = `${'deep/'.repeat(30)}file`;
  const capability = Buffer.from('0100000200200000000000000000000000000000', 'hex');

  const sizeBytes = place.extract(
    archiveOf(
      { name: './', type: 'directory', mode: 0o751, mtime: 1_000_000_000 },
      { name: 'setuid', mode: 0o4755, uid: 1000, gid: 1001, content: 'x' },
      { name: 'hard', type: 'link', linkName: './setuid', mode: 0o4755, uid: 1000, gid: 1001 },
      { name: 'dir/', type: 'directory', mode: 0o2775, gid: 5, mtime: 1_100_000_000 },
      { name: 'dir/abs', type: 'symlink', linkName: '/etc/passwd', uid: 7 },
      { name: 'dir/null', type: 'charDevice', major: 1, minor: 3, mode: 0o666 },
      { name: 'dir/disk', type: 'blockDevice', major: 259, minor: 300, mode: 0o660, gid: 6 },
      { name: 'dir/pipe', type: 'fifo', mode: 0o622 },
      { name: long, content: 'long' },
      {
        name: 'cap',
        content: 'c',
        pax: { 'SCHILY.xattr.security.capability': capability, mtime: '1234567890.123456789' },
      },
      { name: 'old', pax: { mtime: '-1.5', uid: '3000000', path: 'ümlaut' }, content: 'o' },
      { name: 'evil', pax: { 'SCHILY.xattr.trusted.overlay.redirect': '/etc', 'SCHILY.xattr.user.mark': 'm' } },
    ),
  );

  assert.equal(sizeBytes, 7 + 11); // a link is as large as its target's name
  assert.equal(statSync(place.inside).mode & 0o7777, 0o751);
  assert.equal(statSync(place.inside).mtimeMs, 1e12);
  const setuid = statSync(place.in('setuid'));
  assert.deepEqual([setuid.mode & 0o7777, setuid.uid, setuid.gid, setuid.nlink], [0o4755, 1000, 1001, 2]);
  const directory = statSync(place.in('dir'));
  assert.deepEqual([directory.mode & 0o7777, directory.gid, directory.mtimeMs], [0o2775, 5, 1.1e12]);
  assert.equal(readlinkSync(place.in('dir/abs')), '/etc/passwd');
  assert.equal(lstatSync(place.in('dir/abs')).uid, 7);
  assert.equal(statSync(place.in('dir/null')).rdev, 0x103);
  assert.equal(execFileSync('stat', ['-c', '%Hr:%Lr %a', place.in('dir/disk')], { encoding: 'utf8' }), '259:300 660\n');
  assert.ok(statSync(place.in('dir/pipe')).isFIFO());
  assert.equal(readFileSync(place.in(long), 'utf8'), 'long');
  assert.deepEqual(getXattr(place.in('cap'), 'security.capability'), capability);
  assert.equal(statSync(place.in('cap'), { bigint: true }).mtimeNs, 1_234_567_890_123_456_789n);
  assert.equal(statSync(place.in('ümlaut'), { bigint: true }).mtimeNs, -1_500_000_000n);
  assert.equal(statSync(place.in('ümlaut')).uid, 3_000_000);
  assert.equal(getXattr(place.in('evil'), 'trusted.overlay.redirect'), undefined);
  assert.equal(getXattr(place.in('evil'), 'user.mark')?.toString(), 'm');
});

test('whiteouts become those of overlayfs', () => {
  using place = new Place();

  place.extract(
    archiveOf(
      { name: 'd/', type: 'directory' },
      { name: 'd/.wh.gone' },
      { name: 'o/', type: 'directory' },
      { name: 'o/.wh..wh..opq' },
      { name: '.wh..wh.plnk/', type: 'directory' },
      { name: '.wh..wh.aufs' },
      { name: '.wh.again' },
      { name: 'again/', type: 'directory' },
      { name: '.wh.implied' },
      { name: 'implied/file', content: 'x' },
      { name: 'kept', content: 'x' },
      { name: '.wh.kept' },
    ),
  );

  const gone = statSync(place.in('d/gone'));
  assert.ok(gone.isCharacterDevice());
  assert.equal(gone.rdev, 0);
  assert.equal(getXattr(place.in('o'), OPAQUE)?.toString(), 'y');
  assert.equal(getXattr(place.in('again'), OPAQUE)?.toString(), 'y');
  assert.equal(getXattr(place.in('implied'), OPAQUE)?.toString(), 'y');
  assert.equal(getXattr(place.in('d'), OPAQUE), undefined);
  assert.equal(readFileSync(place.in('kept'), 'utf8'), 'x');
  assert.deepEqual(readdirSync(place.inside).toSorted(), ['again', 'd', 'implied', 'kept', 'o']);
});

test('a later entry replaces an earlier one, whatever it was', () => {
  using place = new Place();

  place.extract(
    archiveOf(
      { name: 'a/b/c', content: 'deep' },
      { name: 'a', content: 'now a file' },
      { name: 'f', content: 'file' },
      { name: 'f/', type: 'directory' },
      { name: 'f/inner', content: 'i' },
      { name: 'f/', type: 'directory', mode: 0o700 },
      { name: 'l', type: 'symlink', linkName: 'f' },
      { name: 'l/', type: 'directory' },
    ),
  );

  assert.equal(readFileSync(place.in('a'), 'utf8'), 'now a file');
  assert.equal(readFileSync(place.in('f/inner'), 'utf8'), 'i');
  assert.equal(statSync(place.in('f')).mode & 0o7777, 0o700);
  assert.ok(lstatSync(place.in('l')).isDirectory());
});

test('a folder that is only implied is like the one below, so that the merged view keeps its attributes', () => {
  using place = new Place();
  const lower = join(place.path, 'outside');
  mkdirSync(join(lower, 'srv/data'), { recursive: true });
  chmodSync(join(lower, 'srv/data'), 0o1770);
  chownSync(join(lower, 'srv/data'), 33, 34);
  utimesSync(join(lower, 'srv/data'), 1e9, 1e9);

  place.extract(archiveOf({ name: 'srv/data/new', content: 'x' }), { lower: [lower] });

  const made = statSync(place.in('srv/data'));
  assert.deepEqual([made.mode & 0o7777, made.uid, made.gid, made.mtimeMs], [0o1770, 33, 34, 1e12]);
});

const formats: readonly (readonly [string, readonly string[]])[] = [
  ['gnu', ['--format=gnu']],
  ['oldgnu', ['--format=oldgnu']],
  ['ustar', ['--format=ustar']],
  ['v7', ['--format=v7']],
  ['pax with attributes', ['--format=posix', '--xattrs', '--xattrs-include=*']],
  ['gnu sparse', ['--format=gnu', '--sparse']],
  ['pax sparse 0.0', ['--format=posix', '--sparse', '--sparse-version=0.0']],
  ['pax sparse 0.1', ['--format=posix', '--sparse', '--sparse-version=0.1']],
  ['pax sparse 1.0', ['--format=posix', '--sparse', '--sparse-version=1.0']],
];

for (const [name, flags] of formats) {
  test(`GNU tar's ${name} are extracted as GNU tar does it`, () => {
    using place = new Place();
    const source = join(place.path, 'source');
    const reference = join(place.path, 'reference');
    mkdirSync(reference);
    fillTree(source, { devices: name !== 'v7', longNames: name !== 'v7' && name !== 'ustar' });
    const archive = join(place.path, 'archive.tar');
    execFileSync('tar', ['-cf', archive, ...flags, '-C', source, '.']);
    execFileSync('tar', ['-xpf', archive, '--xattrs', '--xattrs-include=*', '-C', reference]);

    place.extract(readFileSync(archive), { pieceBytes: 700 });

    assert.equal(describeTree(place.inside), describeTree(reference));
    if (name.includes('sparse')) assert.ok(statSync(place.in('holes')).blocks < 200, 'the holes are kept');
  });
}

function fillTree(root: string, { devices, longNames }: { devices: boolean; longNames: boolean }): void {
  mkdirSync(join(root, 'sub/empty'), { recursive: true });
  writeFileSync(join(root, 'plain'), 'hello');
  writeFileSync(join(root, 'empty'), '');
  writeFileSync(join(root, 'block'), Buffer.alloc(512, 'b'));
  writeFileSync(join(root, 'sub/large'), Buffer.alloc(3_000_001, 'l'));
  chmodSync(join(root, 'plain'), 0o6711);
  symlinkSync('plain', join(root, 'symlink'));
  execFileSync('ln', [join(root, 'plain'), join(root, 'sub/hard')]);
  if (devices) {
    execFileSync('mkfifo', [join(root, 'fifo')]);
    execFileSync('mknod', [join(root, 'zero'), 'c', '1', '5']);
  }
  if (longNames) {
    const long = join(root, 'x'.repeat(120), 'y'.repeat(120));
    mkdirSync(long, { recursive: true });
    writeFileSync(join(long, 'z'.repeat(200)), 'long');
    symlinkSync('t'.repeat(180), join(root, 'longlink'));
    execFileSync('ln', [join(long, 'z'.repeat(200)), join(root, 'longhard')]);
  }
  setXattr(join(root, 'plain'), 'user.colour', Buffer.from('blue'));
  const holes = openSync(join(root, 'holes'), 'w');
  for (let at = 0; at < 12; at += 1) writeSync(holes, `piece ${at}`, at * 1_000_000);
  closeSync(holes);
  truncateSync(join(root, 'holes'), 20_000_000);
  writeFileSync(join(root, 'allhole'), '');
  truncateSync(join(root, 'allhole'), 5_000_000);
  utimesSync(join(root, 'plain'), 1_234_567_890, 1_234_567_890);
  utimesSync(join(root, 'sub'), 1_000_000_000, 1_000_000_000);
}

/** A tree with all its metadata, as text. */
function describeTree(root: string): string {
  const list = execFileSync('find', ['.', '-printf', '%P %y %m %U %G %T@ %l %n\n'], { cwd: root, encoding: 'utf8' });
  const sums = execFileSync('sh', ['-c', 'find . -type f -exec sha256sum {} +'], { cwd: root, encoding: 'utf8' });
  const colour = String(getXattr(join(root, 'plain'), 'user.colour'));
  return [list, sums, colour].map((text) => text.split('\n').toSorted().join('\n')).join('\n---\n');
}
