import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempDisposableSync, readdirSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { promisify } from 'node:util';

import type { Inspect } from '@gantry/engine/containers/schema.ts';
import { TarWriter } from '@gantry/testing/archives/tar-writer.ts';
import { imageArchive } from '@gantry/testing/busybox-image.ts';
import { compileLookInto } from '@gantry/testing/programs/look-into.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

const execute = promisify(execFile);
const NOBODY = 65534;

/** A program that a local user could run without the protection. */
async function asNobody(...command: string[]): Promise<string> {
  const [program, ...words] = command;
  const { stdout } = await execute(program!, words, { uid: NOBODY, gid: NOBODY });
  return stdout;
}

suite('a local user', { concurrency: false }, () => {
  let engine: TestEngine;
  let id: string;
  let pid: number;

  before(async () => {
    engine = await TestEngine.start();
    // The test is about the engine's own protection, not the outer folder's.
    chmodSync(engine.directory, 0o755);
    const layer = new TarWriter().add({ name: 'bin/setuid', content: '#!/bin/sh\nid', mode: 0o4755 }).end();
    await engine.post('/images/load?quiet=1', imageArchive(layer, ['setuid:1']));
    const script =
      'for place in / /v/ /anonymous/; do cp /bin/busybox ${place}become && chmod 4755 ${place}become; done; echo secret | tee /v/file; sleep 600';
    id = await engine.run(['sh', '-c', script], {
      Env: ['PASSWORD=hidden'],
      Volumes: { '/anonymous': {} },
      HostConfig: { Binds: ['data:/v'] },
    });
    const said = await engine.stream('GET', `/containers/${id}/logs?stdout=1&follow=1`);
    await once(said, 'data');
    said.destroy();
    pid = (await engine.get<{ State: { Pid: number } }>(`/containers/${id}/json`)).body.State.Pid;
  });
  after(async () => await engine[Symbol.asyncDispose]());

  test('runs no setuid program of a container, of an image or of a volume', async () => {
    const { body } = await engine.get<{ GraphDriver: { Data: { UpperDir: string } } }>('/images/setuid:1/json');

    for (const program of [
      join(engine.dataRoot, 'writable', id, 'upper/become'),
      join(body.GraphDriver.Data.UpperDir, 'bin/setuid'),
      join(engine.dataRoot, 'volumes/data/_data/become'),
      await anonymousFile('become'),
    ]) {
      assert.equal(statSync(program).mode & 0o7777, 0o4755, program); // it would work from there
      await assert.rejects(asNobody(program, 'id'), { code: 'EACCES' }, program);
    }
  });

  async function anonymousFile(name: string): Promise<string> {
    const { body } = await engine.get<Inspect>(`/containers/${id}/json`);
    return join(body.Mounts.find(({ Destination }) => Destination === '/anonymous')!.Source, name);
  }

  test('gets no rights by a setuid program, though a container runs as the same user', async () => {
    using place = mkdtempDisposableSync(join(tmpdir(), 'gantry-setuid-'));
    chmodSync(place.path, 0o755);
    const program = join(place.path, 'user');
    compileLookInto(program);
    chmodSync(program, 0o4755);
    const binds = { HostConfig: { Binds: ['data:/v', `${place.path}:/from:ro`] } };
    await engine.wait(await engine.run(['sh', '-c', 'cp /from/user /v/user && chmod 4755 /v/user'], binds));
    const other = await engine.run(['sleep', '600'], { User: String(NOBODY), HostConfig: { Binds: ['data:/v'] } });
    const { body } = await engine.get<Inspect>(`/containers/${other}/json`);
    const inside = `/proc/${body.State.Pid}/root/v/user`;

    assert.equal(await asNobody(program), '0\n'); // it would give rights from another place
    assert.equal(statSync(inside).mode & 0o7777, 0o4755);
    assert.equal(await asNobody(inside), `${NOBODY}\n`);
  });

  test('has no rights to the files of a shim, whatever the folder above allows', async () => {
    const failing = await engine.create(['/nosuch']);
    await engine.post(`/containers/${failing}/start`);
    const { body } = await engine.post<{ Id: string }>(`/containers/${id}/exec`, { Cmd: ['sleep', '600'] });
    await engine.post(`/exec/${body.Id}/start`, { Detach: true });

    const shims = join(engine.directory, 'exec/shims');
    const files = readdirSync(shims, { recursive: true, encoding: 'utf8' });
    const readable = files.filter((name) => (statSync(join(shims, name)).mode & 0o077) !== 0);

    assert.ok(files.includes(`${id}/runtime.log`));
    // The number of the process, which everybody finds in /proc.
    assert.deepEqual(
      readable.filter((name) => !name.endsWith('/pid')),
      [],
    );
  });

  test('reads no volume, log, record, or folder of a shim', async () => {
    for (const path of [
      join(engine.dataRoot, 'volumes/data/_data/file'),
      join(engine.dataRoot, 'containers', id, `${id}-json.log`),
      join(engine.dataRoot, 'containers', id, 'hosts'),
      join(engine.dataRoot, 'gantry.db'),
      join(engine.dataRoot, 'gantry.db-wal'),
      join(engine.dataRoot, 'lock'),
      join(engine.directory, 'exec/lock'),
      join(engine.directory, 'exec/shims', id, 'config.json'),
    ]) {
      statSync(path);
      await assert.rejects(asNobody('cat', path), /Permission denied/, path);
    }
    for (const folder of [engine.dataRoot, join(engine.directory, 'exec/shims')]) {
      await assert.rejects(asNobody('ls', folder), /Permission denied/, folder);
    }
  });

  test('finds the modes closed, each for itself', () => {
    const modes = new Map([
      ['data', 0o710],
      ['exec', 0o711],
      ['gantry.sock', 0o660],
      ['pid', 0o644],
    ]);
    for (const root of ['data', 'exec']) {
      for (const { name, parentPath } of readdirSync(join(engine.directory, root), { withFileTypes: true })) {
        const isFolder = statSync(join(parentPath, name)).isDirectory();
        modes.set(join(root, name), isFolder ? 0o700 : 0o600);
      }
    }
    modes.set(join('data/containers', id, `${id}-json.log`), 0o600);
    modes.set(join('exec/shims', id), 0o700);
    for (const [name, mode] of modes) {
      const found = statSync(join(engine.directory, name));
      assert.equal((found.mode & 0o7777).toString(8), mode.toString(8), name);
      assert.deepEqual([found.uid, found.gid], [0, 0], name);
    }
  });

  test('sees the same wall after an update from a version that left all open', async () => {
    for (const name of ['', 'layers', 'volumes', 'writable', 'containers'])
      chmodSync(join(engine.dataRoot, name), 0o755);
    chmodSync(join(engine.dataRoot, 'gantry.db'), 0o644);

    await engine.kill('SIGKILL');
    await engine.startAgain();

    assert.equal(statSync(engine.dataRoot).mode & 0o7777, 0o710);
    assert.equal(statSync(join(engine.dataRoot, 'layers')).mode & 0o7777, 0o700);
    assert.equal(statSync(join(engine.dataRoot, 'gantry.db')).mode & 0o7777, 0o600);
  });

  test('is not the user of a container: its files are open to all users in it', async () => {
    const bind = join(engine.directory, 'made/for/it');
    const script =
      'umask; cat /etc/hosts /etc/resolv.conf /etc/hostname >/dev/null && ls /v /b /w / && stat -c %a / /v /b /w';
    const binds = { Binds: ['data:/v:ro', 'fresh:/w', `${bind}:/b`] };

    const user = await engine.run(['sh', '-c', script], {
      User: '65534:65534',
      WorkingDir: '/w/made',
      HostConfig: binds,
    });

    assert.equal(await engine.wait(user), 0, (await engine.output(user)).stderr);
    const { stdout } = await engine.output(user);
    assert.match(stdout, /^0022\n/);
    assert.match(stdout, /755\n755\n755\n755\n$/);
    const exec = await engine.docker('exec', id, 'sh', '-c', 'umask; grep Umask /proc/1/status');
    assert.equal(exec.stdout, '0022\nUmask:\t0022\n');
    assert.match(await asNobody('cat', `/proc/${pid}/comm`), /./);
  });

  test('gets to the socket by its group', async () => {
    const socket = join(engine.directory, 'gantry.sock');
    await assert.rejects(asNobody('docker', '-H', `unix://${socket}`, 'ps'), /permission denied/);
  });
});
