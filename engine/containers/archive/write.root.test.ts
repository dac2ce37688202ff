import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { gzipSync } from 'node:zlib';

import { tarList, type Listed } from '@gantry/testing/archives/tar-list.ts';
import { TarWriter, type TarEntry } from '@gantry/testing/archives/tar-writer.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

const TAR = { headers: { 'Content-Type': 'application/x-tar' } };

function tar(...entries: TarEntry[]): Buffer {
  return entries.reduce((writer, entry) => writer.add(entry), new TarWriter()).end();
}

suite('an archive into a container', { concurrency: false }, () => {
  let engine: TestEngine;
  let id: string;
  let outside: string;
  before(async () => {
    outside = mkdtempSync(join(tmpdir(), 'gantry-outside-'));
    mkdirSync(join(outside, 'inner'));
    engine = await TestEngine.start();
    const binds = { HostConfig: { Binds: ['volume:/v', 'volume:/ro:ro', `${outside}/inner:/bind`] } };
    id = await engine.run(['sleep', '1000'], binds);
  });
  after(async () => {
    await engine[Symbol.asyncDispose]();
    rmSync(outside, { recursive: true });
  });

  type Refusal = { message: string };
  async function put(path: string, body: Buffer, query = '', of = id): Promise<{ status: number; message: string }> {
    const url = `/containers/${of}/archive?path=${encodeURIComponent(path)}${query}`;
    const { status, raw } = await engine.request('PUT', url, { ...TAR, body });
    return { status, message: raw.length === 0 ? '' : (JSON.parse(raw.toString()) as Refusal).message };
  }

  async function files(path: string, of = id): Promise<Map<string, Listed>> {
    const { status, raw } = await engine.get(`/containers/${of}/archive?path=${encodeURIComponent(path)}`);
    assert.equal(status, 200, raw.toString());
    return tarList(raw);
  }

  /** A fresh folder, in which what a shell writes is there already. */
  async function folder(name: string, script = ''): Promise<string> {
    const { Id } = (
      await engine.post<{ Id: string }>(`/containers/${id}/exec`, {
        Cmd: [
          'sh',
          '-c',
          `mkdir -p /${name} && cd /${name} && { :; ${script}
}`,
        ],
        AttachStdout: true,
      })
    ).body;
    await engine.post(`/exec/${Id}/start`, {});
    return `/${name}`;
  }

  test('keeps owners, modes, times, links, devices, attributes and holes', async () => {
    const place = await folder('kept');
    const pax = { 'SCHILY.xattr.user.note': 'n', 'SCHILY.xattr.security.capability': Buffer.from(CAPABILITY, 'hex') };
    const answer = await put(
      place,
      tar(
        { name: 'f', content: 'hello', mode: 0o6750, uid: 12, gid: 34, mtime: 1_600_000_000, pax },
        { name: 'd/', type: 'directory', mode: 0o1770, uid: 1, gid: 2, mtime: 1_500_000_000 },
        { name: 'd/h', type: 'link', linkName: 'f' },
        { name: 'd/l', type: 'symlink', linkName: '../../../../../etc/shadow', uid: 7, gid: 8 },
        { name: 'd/null', type: 'charDevice', major: 1, minor: 3, mode: 0o666 },
        { name: 'd/fifo', type: 'fifo' },
        { name: 'implied/x', content: 'x' },
        { name: `${'long/'.repeat(40)}end`, content: 'end' },
        { name: 'sparse', content: 'data', pax: SPARSE },
      ),
    );

    assert.deepEqual(answer, { status: 200, message: '' });
    const found = await files(place);
    const f = found.get('kept/d/h')!;
    assert.deepEqual([f.mode, f.uid, f.gid, f.mtime.seconds], [0o6750, 12, 34, 1_600_000_000]);
    assert.deepEqual(Object.fromEntries(f.xattrs.map(([name, value]) => [name, value.toString('hex')])), {
      'user.note': '6e',
      'security.capability': CAPABILITY,
    });
    assert.equal(found.get('kept/f')?.linkPath, 'kept/d/h');
    const d = found.get('kept/d/')!;
    assert.deepEqual([d.mode, d.uid, d.gid, d.mtime.seconds], [0o1770, 1, 2, 1_500_000_000]);
    const l = found.get('kept/d/l')!;
    assert.deepEqual([l.linkPath, l.uid, l.gid], ['../../../../../etc/shadow', 7, 8]);
    assert.deepEqual([found.get('kept/d/null')?.major, found.get('kept/d/null')?.minor], [1, 3]);
    assert.equal(found.get('kept/d/fifo')?.type, 'fifo');
    assert.deepEqual([found.get('kept/implied/')?.mode, found.get('kept/implied/')?.uid], [0o755, 0]);
    assert.equal(found.get(`kept/${'long/'.repeat(40)}end`)?.content.toString(), 'end');
    assert.equal(found.get('kept/sparse')?.sizeBytes, 2 ** 20);
  });

  test('a sparse file of many gigabytes stays one on its way in and out', async () => {
    const place = await folder('holes');
    const size = String(2 ** 36);
    const pax = { ...SPARSE, 'GNU.sparse.size': size, 'GNU.sparse.realsize': size };
    assert.equal((await put(place, tar({ name: 'sparse', content: 'data', pax }))).status, 200);

    const { raw } = await engine.get(`/containers/${id}/archive?path=/holes/sparse`);

    assert.ok(raw.length < 2 ** 20);
    assert.equal(tarList(raw).get('sparse')?.sizeBytes, 2 ** 36);
    assert.equal((await put(await folder('holes2'), raw)).status, 200);
    assert.equal((await files('/holes2/sparse')).get('sparse')?.sizeBytes, 2 ** 36);
  });

  test('replaces existing files, unless the kind must stay', async () => {
    const make = 'mkdir -p d/e; echo old >f; ln -s f l; mkdir full; echo x >full/x';
    const asked = [
      { name: 'd', content: 'file now' },
      { name: 'f/', type: 'directory' },
      { name: 'l', content: 'no link' },
      { name: 'full/y', content: 'y' },
    ] as const;

    const place = await folder('replaced', make);
    assert.equal((await put(place, tar(...asked))).status, 200);
    const found = await files(place);
    const other = await folder('kinds', make);
    const folderToFile = await put(other, tar(asked[0]), '&noOverwriteDirNonDir=true');
    const fileToFolder = await put(other, tar(asked[1]), '&noOverwriteDirNonDir=1');

    assert.deepEqual(
      [...found].map(([path, { type }]) => `${path} ${type}`),
      [
        'replaced/ directory',
        'replaced/d file',
        'replaced/f/ directory',
        'replaced/full/ directory',
        'replaced/full/x file',
        'replaced/full/y file',
        'replaced/l file',
      ],
    );
    assert.deepEqual(folderToFile, {
      status: 400,
      message: 'cannot overwrite directory "/kinds/d" with non-directory "/kinds"',
    });
    assert.deepEqual(fileToFolder, {
      status: 400,
      message: 'cannot overwrite non-directory "/kinds/f" with directory "/kinds"',
    });
    assert.equal((await put(other, tar(asked[2], asked[3]), '&noOverwriteDirNonDir=True')).status, 200);
  });

  test('goes through links inside of the container, into volumes and binds, running or not', async () => {
    const place = await folder(
      'links',
      'ln -s /v volume; ln -s /bind bind; mkdir real; ln -s /links/real abs; ln -s real rel',
    );
    const stopped = await engine.create(['true'], { HostConfig: { Binds: ['volume:/v'] } });

    for (const path of ['rel', 'rel/', 'abs/.', 'volume', 'bind']) {
      const name = path.replaceAll('/', '-');
      assert.equal((await put(`${place}/${path}`, tar({ name, content: name }))).status, 200, path);
    }
    assert.equal((await put(place, tar({ name: 'abs/through', content: 'x' }))).status, 200);
    assert.equal((await put('/v', tar({ name: 'of-stopped', content: 'x' }), '', stopped)).status, 200);

    assert.deepEqual(
      [...(await files('/links/real')).keys()],
      ['real/', 'real/abs-.', 'real/rel', 'real/rel-', 'real/through'],
    );
    assert.deepEqual([...(await files('/v')).keys()], ['v/', 'v/of-stopped', 'v/volume']);
    assert.equal(readFileSync(join(outside, 'inner/bind'), 'utf8'), 'bind');
  });

  const places: readonly [path: string, status: number, message: string | RegExp][] = [
    ['', 400, 'bad parameter: path cannot be empty'],
    ['/etc/passwd', 400, 'extraction point is not a directory'],
    ['/etc/passwd/', 400, 'extraction point is not a directory'],
    ['/nowhere', 404, /^Could not find the file \/nowhere in container /],
    ['/ro', 403, 'mounted volume is marked read-only'],
    ['/ro/', 403, 'mounted volume is marked read-only'],
  ];
  test('is refused for an invalid or read-only place, and changes nothing', async () => {
    for (const [path, status, message] of places) {
      const answer = await put(path, tar({ name: 'never', content: 'never' }));
      assert.equal(answer.status, status, path);
      assert.match(answer.message, typeof message === 'string' ? new RegExp(`^${message}$`) : message);
    }
    const body = { HostConfig: { ReadonlyRootfs: true, Binds: ['volume:/v'] } };
    const readOnly = await engine.create(['true'], body);
    const refused = await put('/tmp', tar({ name: 'never' }), '', readOnly);
    assert.deepEqual(refused, { status: 403, message: 'container rootfs is marked read-only' });
    assert.equal((await put('/v', tar({ name: 'yes' }), '', readOnly)).status, 200);
  });

  const hostile: readonly [why: string, entries: readonly TarEntry[], message: RegExp][] = [
    ['a climbing name', [{ name: '../escaped' }], /is outside of/],
    ['a name that climbs later', [{ name: 'a/../../escaped' }], /is outside of/],
    ['a hard link that climbs', [{ name: 'l', type: 'link', linkName: '../etc/passwd' }], /is outside of/],
    ['a hard link to an absolute name', [{ name: 'l', type: 'link', linkName: '/etc/passwd' }], /does not exist/],
    [
      'a hard link to a folder',
      [
        { name: 'd/', type: 'directory' },
        { name: 'l', type: 'link', linkName: 'd' },
      ],
      /is a folder/,
    ],
    ['a file below a file', [{ name: 'f' }, { name: 'f/x' }], /is not a folder/],
    ['a device with an impossible number', [{ name: 'd', type: 'charDevice', major: 2 ** 14 }], /device number/],
    ['a size beyond the end', [{ name: 'f', content: 'x', size: 2 ** 33 - 1 }], /ends in the middle/],
    ['a link without a target', [{ name: 'l', type: 'symlink' }], /has no target/],
    ['a name that is too long', [{ name: 'n'.repeat(300) }], /too long/],
    ['a link that leads nowhere', [{ name: 'l', type: 'symlink', linkName: 'x' }, { name: 'l/f' }], /leads nowhere/],
    ['a circle', [{ name: 'l', type: 'symlink', linkName: 'l' }, { name: 'l/f' }], /leads nowhere/],
  ];
  test('cannot do harm: a hostile archive is refused with the reason', async () => {
    for (const [why, entries, reason] of hostile) {
      const { status, message } = await put(await folder(`hostile-${why.replaceAll(' ', '-')}`), tar(...entries));
      assert.equal(status, 400, why);
      assert.match(message, reason, why);
    }
    for (const junk of [
      Buffer.alloc(2000, 'junk'),
      tar({ name: 'cut', content: 'x'.repeat(5000) }).subarray(0, 2000),
    ]) {
      assert.equal((await put('/tmp', junk)).status, 400);
    }
  });

  test('cannot write outside through links that it brings along, absolute or climbing', async () => {
    for (const target of [outside, `../../../../../../..${outside}`, `/proc/self/root${outside}`]) {
      const place = await folder(`out-${Math.random()}`);
      await put(
        place,
        tar({ name: 'link', type: 'symlink', linkName: target }, { name: 'link/escaped', content: 'escaped' }),
      );
      await put(`${place}/link`, tar({ name: 'escaped', content: 'escaped' }));
    }
    assert.deepEqual(readdirSync(outside), ['inner']);
  });

  test('may be compressed', async () => {
    const place = await folder('compressed');
    const plain = tar({ name: 'f', content: 'x'.repeat(100_000) });
    const packed = {
      gzip: gzipSync(plain),
      bzip2: execFileSync('bzip2', ['-c'], { input: plain }),
      xz: execFileSync('xz', ['-c'], { input: plain }),
    };
    for (const [name, body] of Object.entries(packed)) {
      assert.equal((await put(await folder(`compressed/${name}`), body)).status, 200, name);
      assert.equal((await files(`${place}/${name}/f`)).get('f')?.sizeBytes, 100_000);
    }
    assert.match((await put(place, packed.gzip.subarray(0, 60))).message, /gzip data is cut/);
  });

  test('belongs to the user of the container where the client wants it so', async () => {
    const of = await engine.create(['true'], { User: 'nobody:daemon' });
    assert.equal((await put('/tmp', tar({ name: 'f', uid: 5, gid: 6 }), '&copyUIDGID=1', of)).status, 200);

    const { uid, gid } = (await files('/tmp/f', of)).get('f')!;
    assert.deepEqual([uid, gid], [65_534, 1]);
  });

  test('tells of itself in an event when it is done', async () => {
    const since = Date.now() / 1000;
    await put('/tmp', tar({ name: '../refused' }));
    await put('/tmp', tar({ name: 'told' }));
    const answer = await engine.get(`/events?since=${since}&until=${Date.now() / 1000 + 1}`);

    const actions = answer.raw.toString().trim().split('\n');
    assert.deepEqual(
      actions.map((line) => (JSON.parse(line) as { Action: string }).Action),
      ['copy'],
    );
  });

  test('ends with its client, and with its container', async () => {
    const of = await engine.create(['true']);
    const uploads = ['gone', 'removed'].map((name) => {
      const path = `/containers/${of}/archive?path=/tmp`;
      const upload = request({ socketPath: engine.socketPath, path, method: 'PUT', ...TAR });
      const ended = new Promise<void>((resolve) => {
        upload.on('close', resolve).on('error', () => undefined);
        upload.on('response', () => upload.destroy());
      });
      upload.write(tar({ name, content: Buffer.alloc(2 ** 20) }).subarray(0, 2 ** 19 + 512));
      return { upload, ended };
    });
    uploads[0]!.upload.destroy();
    await uploads[0]!.ended;

    assert.equal((await engine.delete(`/containers/${of}`)).status, 204);

    await uploads[1]!.ended;
    const folderOf = join(engine.dataRoot, 'writable', of);
    while (existsSync(folderOf)) await new Promise((resolve) => setTimeout(resolve, 20));
  });
});

/** cap_net_raw+ep. */
const CAPABILITY = '0100000200200000000000000000000000000000';
/** A file of 1 MB with four bytes in its middle, in the form of GNU tar's version 0.1. */
const SPARSE = {
  'GNU.sparse.size': String(2 ** 20),
  'GNU.sparse.numblocks': '1',
  'GNU.sparse.map': '4096,4',
};
