import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';

import type { OciMount } from './mounts.ts';
import { placeMounts } from './place-mounts.ts';

const folder = mkdtempSync(join(tmpdir(), 'gantry-places-'));
after(() => rmSync(folder, { recursive: true }));

/** The root of an image, and a volume. */
const [root, volume] = [join(folder, 'root'), join(folder, 'volume')];
for (const path of ['root/target/sub', 'root/proc', 'root/var', 'root/a', 'volume/plain']) {
  mkdirSync(join(folder, path), { recursive: true });
}
writeFileSync(join(root, 'file'), '');
const links: [at: string, target: string | Buffer][] = [
  ['dangling', '/made/later'],
  ['second', 'dangling'],
  ['var/run', '../run'],
  ['up', '../../../../top'],
  ['dir', 'target'],
  ['loop', 'loop'],
  ['to-proc', '/proc'],
  ['to-sys', '../../proc/./sys'],
  ['to-cpus', 'proc/cpuinfo'],
  ['in-volume', 'data/to-proc'],
  ['a/swap', '/b'],
  ['no-text', Buffer.from([0x66, 0xff])],
];
for (const [at, target] of links) symlinkSync(target, join(root, at));
for (const [at, target] of [
  ['out', '/target'],
  ['to-proc', '/proc/1'],
  ['back', '../a'],
] as const) {
  symlinkSync(target, join(volume, at));
}

const bind = (destination: string, source = volume): OciMount => ({ destination, source, type: 'bind', options: [] });
const tmpfs = (destination: string): OciMount => ({ destination, source: 'tmpfs', type: 'tmpfs', options: [] });
const proc: OciMount = { destination: '/proc', source: 'proc', type: 'proc', options: [] };

function placesOf(...mounts: OciMount[]): string[] {
  using places = placeMounts(root, mounts);
  return places.mounts.map(({ destination }) => destination);
}

const places: [name: string, mounts: OciMount[], expected: string[]][] = [
  ['a plain path', [bind('/target/sub')], ['/target/sub']],
  ['a missing path', [bind('/target/x/y')], ['/target/x/y']],
  ['a dangling link', [bind('/dangling')], ['/made/later']],
  ['a path below a dangling link', [tmpfs('/dangling/x')], ['/made/later/x']],
  ['a link to a dangling link', [bind('/second', join(root, 'file'))], ['/made/later']],
  ['a link to a folder', [bind('/dir/sub')], ['/target/sub']],
  ['a link that climbs above the root', [bind('/up')], ['/top']],
  ['a relative link', [bind('/var/run/x')], ['/run/x']],
  ['a link inside an outer bind', [bind('/data/out/sub'), bind('/data')], ['/data', '/target/sub']],
  ['a relative link inside an outer bind', [bind('/data/back'), bind('/data')], ['/data', '/a']],
  ['a link covered by a tmpfs', [bind('/var/run'), tmpfs('/var')], ['/var', '/var/run']],
  ['an outer mount that a link names', [bind('/run/x'), tmpfs('/var/run')], ['/run', '/run/x']],
  ['a path below a file', [bind('/file/x')], ['/file/x']],
];
for (const [name, mounts, expected] of places) {
  test(`a mount is placed on ${name}`, () => {
    assert.deepEqual(placesOf(...mounts), expected);
  });
}

test('a further path is resolved in all mounts', () => {
  using resolved = placeMounts(root, [bind('/data')]);

  assert.equal(resolved.resolve('/data/out/x'), '/target/x');
  assert.equal(resolved.resolve('/second'), '/made/later');
  assert.equal(resolved.resolve('/'), '/');
});

const inside = 'cannot be mounted because it is inside /proc';
const otherType = 'cannot be mounted because the source is not of type proc';
const refused: [mount: OciMount, message: string][] = [
  [bind('/proc'), `/proc ${otherType}`],
  [tmpfs('/proc'), `/proc ${otherType}`],
  [bind('/proc/'), `/proc/, which leads to /proc, ${otherType}`],
  [bind('/proc//sys'), `/proc//sys, which leads to /proc/sys, ${inside}`],
  [bind('/proc/1'), `/proc/1 ${inside}`],
  [tmpfs('/proc/fs'), `/proc/fs ${inside}`],
  [bind('/to-proc'), `/to-proc, which leads to /proc, ${otherType}`],
  [bind('/to-proc/1'), `/to-proc/1, which leads to /proc/1, ${inside}`],
  [tmpfs('/to-sys'), `/to-sys, which leads to /proc/sys, ${inside}`],
  [bind('/in-volume'), `/in-volume, which leads to /proc/1, ${inside}`],
  [bind('/loop'), 'too many links in /loop'],
  [bind('/no-text'), 'a link leads to /f\ufffd, which is not UTF-8'],
];
for (const [mount, message] of refused) {
  test(`a ${mount.type} on ${mount.destination} is refused`, () => {
    const before = readdirSync('/proc/self/fd').length;

    assert.throws(() => placesOf(proc, bind('/data'), mount), { kind: 'failed', message });

    assert.equal(readdirSync('/proc/self/fd').length, before);
  });
}

test('a mount may be moved by a link of another, which another one moves, up to 40 times', () => {
  symlinkSync('/', join(volume, 'top'));
  // The last is moved by the first one's link, so that each round moves one.
  const chain = (length: number): OciMount[] => [
    ...Array.from({ length }, (_, at) => bind(`/e${length - at - 1}/top/e${length - at}`)),
    bind('/e0'),
  ];

  assert.deepEqual(placesOf(...chain(39)).toSorted()[39], '/e9');
  assert.throws(() => placesOf(...chain(41)), {
    kind: 'failed',
    message: 'the mounts of the container are on too many links of each other',
  });
});

test('files of /proc that report the machine may be replaced, and /proc by a procfs', () => {
  const file = join(root, 'file');

  const mounts = [bind('/proc/cpuinfo', file), bind('/to-cpus', file), bind('/proc/sys/kernel/ns_last_pid', file)];
  assert.deepEqual(placesOf(proc, ...mounts).slice(1), [
    '/proc/cpuinfo',
    '/proc/cpuinfo',
    '/proc/sys/kernel/ns_last_pid',
  ]);
  assert.deepEqual(placesOf(bind('/proc', '/proc')), ['/proc']);
  assert.deepEqual(placesOf(tmpfs('/proc2'), tmpfs('/sys/fs/cgroup')), ['/proc2', '/sys/fs/cgroup']);
});

test('a link at /proc, /sys or /dev is refused', () => {
  const other = join(folder, 'other');
  mkdirSync(other);
  symlinkSync('p', join(other, 'proc'));

  assert.throws(() => placeMounts(other, [proc]), {
    message: 'the image has a link at /proc, where a folder has to be',
  });
});
