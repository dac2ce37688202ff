import { TarWriter, type TarEntry } from './tar-writer.ts';

/** A layer in the form that a program writes, and files that it leaves in the root: path → content. */
export type ForeignLayer = Readonly<{ tool: string; archive: Buffer; files: Readonly<Record<string, string>> }>;

const LONG = 'l'.repeat(130);
const folder = (name: string, more: Partial<TarEntry> = {}): TarEntry => ({ name, type: 'directory', ...more });
const file = (name: string, content: string, more: Partial<TarEntry> = {}): TarEntry => ({ name, content, ...more });
const hard = (name: string, linkName: string, more: Partial<TarEntry> = {}): TarEntry => ({
  name,
  type: 'link',
  linkName,
  ...more,
});
const soft = (name: string, linkName: string, more: Partial<TarEntry> = {}): TarEntry => ({
  name,
  type: 'symlink',
  linkName,
  ...more,
});

function layer(
  tool: string,
  files: ForeignLayer['files'],
  entries: readonly TarEntry[],
  more: object = {},
): ForeignLayer {
  const tar = new TarWriter();
  for (const entry of entries) tar.add({ ...entry, ...more });
  return { tool, archive: tar.end(), files };
}

/** The forms were read from the programs' own archives, or from what their libraries for archives write. */
export const FOREIGN_LAYERS: readonly ForeignLayer[] = [
  layer(
    'nix',
    { 'nix/store/abc-app/bin/run': 'nix', 'nix/store/abc-app/bin/again': 'nix', [`nix/store/abc-app/${LONG}`]: 'long' },
    [
      folder('/nix/'),
      folder('/nix/store/'),
      folder('/nix/store/abc-app/', { mode: 0o555 }),
      folder('/nix/store/abc-app/bin/', { mode: 0o555 }),
      file('/nix/store/abc-app/bin/run', 'nix', { mode: 0o555 }),
      hard('/nix/store/abc-app/bin/again', '/nix/store/abc-app/bin/run', { mode: 0o555 }),
      file('cut', 'long', { pax: { path: `/nix/store/abc-app/${LONG}` } }),
      soft('/nix/store/abc-app/lib', '/nix/store/def-lib/lib'),
    ],
    { mtime: 1 },
  ),
  layer('kaniko', { 'work/a': 'kaniko', 'work/b': 'kaniko' }, [
    folder('/', { pax: { mtime: '1700000000.123456789' } }),
    folder('work/', { mode: 0o750, uid: 1000, gid: 1000 }),
    file('work/a', 'kaniko', { pax: { 'SCHILY.xattr.user.a': 'v', mtime: '1700000000.123456789' } }),
    hard('work/b', '/work/a'),
    // A whiteout with content, which other writers do not have.
    file('etc/.wh.shadow', 'content', { mode: 0, mtime: 0 }),
  ]),
  layer(
    'jib',
    { 'app/resources/greeting': 'jib', [`app/classes/${LONG}.class`]: 'long' },
    [
      folder('app/'),
      folder('app/classes/'),
      file('cut', 'long', { pax: { path: `app/classes/${LONG}.class` } }),
      folder('app/resources/'),
      file('app/resources/greeting', 'jib'),
    ],
    { mtime: 1 },
  ),
  layer(
    'ko',
    { 'ko-app/server': 'ko', 'var/run/ko/refs': 'data' },
    [
      folder('ko-app', { mode: 0o555 }),
      file('/ko-app/server', 'ko', { mode: 0o555, pax: { 'MSWINDOWS.rawsd': 'AQAAgBQAAAAkAAAAAAAAAAAAAAABAg==' } }),
      folder('/var/run/ko', { mode: 0o555 }),
      file('/var/run/ko/refs', 'data', { mode: 0o555 }),
    ],
    { mtime: 0 },
  ),
  layer(
    'bazel',
    { 'app/bin': 'bazel', [`app/${LONG}`]: 'long', 'app/same': 'bazel' },
    [
      folder('./'),
      folder('./app/'),
      file('./app/bin', 'bazel', { mode: 0o555 }),
      file(`./app/${LONG}`, 'long'),
      // Two dependencies with one file each write it.
      folder('./app/'),
      file('./app/same', 'older'),
      file('./app/same', 'bazel'),
    ],
    { magic: 'gnu', mtime: 0 },
  ),
  layer('buildpacks', { 'layers/bp/start': 'buildpacks', [`layers/bp/${LONG}`]: 'long' }, [
    folder('/layers', { uid: 1000, gid: 1000, mtime: 315_532_801 }),
    folder('/layers/bp', { uid: 1000, gid: 1000, mtime: 315_532_801 }),
    file('/layers/bp/start', 'buildpacks', { uid: 1000, gid: 1000, mtime: 315_532_801 }),
    file('cut', 'long', { pax: { path: `/layers/bp/${LONG}` } }),
    soft('/layers/bp/launcher', '/cnb/lifecycle/launcher'),
  ]),
  layer('umoci', { 'opt/app/hard': 'umoci', 'opt/app/run': 'umoci' }, [
    folder('.', { mode: 0o755 }),
    folder('opt/'),
    folder('opt/app/'),
    file('opt/app/hard', 'umoci'),
    hard('opt/app/run', 'opt/app/hard'),
    file('opt/app/.wh.sub', '', { mode: 0, mtime: 0 }),
  ]),
  layer('buildah', { 'opt/app/hard': 'buildah', 'opt/app/run': 'buildah' }, [
    folder('opt/', { mode: 0o040755 }),
    folder('opt/app/', { mode: 0o040755 }),
    file('opt/app/hard', 'buildah', { mode: 0o100755 }),
    hard('opt/app/run', 'opt/app/hard', { mode: 0o100755 }),
    soft('opt/app/sym', 'run', { mode: 0o120777 }),
  ]),
  layer('BSD tar', { 'x/opt/hard': 'bsd', 'x/opt/run': 'bsd', [`x/opt/${LONG}/f`]: 'long', 'x/opt/holes': 'data' }, [
    folder('/x/'),
    folder('/x/opt/'),
    file('/x/opt/hard', 'bsd', {
      pax: { 'LIBARCHIVE.xattr.user.a': 'dg', 'SCHILY.xattr.user.a': 'v', 'SCHILY.fflags': 'nodump' },
    }),
    hard('/x/opt/run', '/x/opt/hard'),
    { ...folder(`${LONG.slice(40)}/`), pax: { path: `/x/opt/${LONG}/` } },
    file('f', 'long', { pax: { path: `/x/opt/${LONG}/f` } }),
    file('/x/opt/GNUSparseFile.0/holes', `${'1\n0\n4\n'.padEnd(512, '\0')}data`, {
      pax: {
        'GNU.sparse.major': '1',
        'GNU.sparse.minor': '0',
        'GNU.sparse.name': '/x/opt/holes',
        'GNU.sparse.realsize': '4',
      },
    }),
  ]),
  layer('BSD tar as ustar', { [`x/${LONG}/f`]: 'prefix' }, [
    folder(`${LONG.slice(40)}/`, { prefix: `/x/${LONG.slice(0, 39)}` }),
    folder(`/x/${LONG.slice(0, 90)}/`),
    file('f', 'prefix', { prefix: `/x/${LONG}` }),
  ]),
  layer('BSD tar as v7', { 'x/a': 'v7', 'x/b': 'v7' }, [folder('/x/'), file('/x/a', 'v7'), hard('/x/b', '/x/a')], {
    magic: 'v7',
  }),
  layer('a program that leaves `..` and links in names', { 'usr/lib/q': 'q', r: 'r' }, [
    folder('usr/lib/'),
    soft('lib', '/usr/lib'),
    file('lib/q', 'q'),
    file('missing/../r', 'r'),
  ]),
];
