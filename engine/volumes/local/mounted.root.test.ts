import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';

import type { Api } from '@gantry/testing/api.ts';
import { busyboxArchive } from '@gantry/testing/busybox-image.ts';
import { Dockerd } from '@gantry/testing/dockerd.ts';
import { shimOf } from '@gantry/testing/shim-of.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

import type { Inspect } from '../../containers/schema.ts';

type Volume = { Name: string; Mountpoint: string; Options: Record<string, string> | null };
type Message = { message: string };

/** The lines of a process's mount table below a path. */
function mountsBelow(path: string, pid = 'self'): string[] {
  const lines = readFileSync(`/proc/${pid}/mountinfo`, 'utf8').split('\n');
  return lines.map((line) => line.split(' ')[4] ?? '').filter((mount) => mount.startsWith(`${path}/`));
}

const NONE = { NetworkMode: 'none' };
const tmpfs = { type: 'tmpfs', device: 'tmpfs', o: 'size=1m,uid=1000,mode=0700,noexec' };

suite('volumes with options', { concurrency: false }, () => {
  let engine: TestEngine;
  let scratch: string;
  before(async () => {
    engine = await TestEngine.start();
    scratch = mkdtempSync(join(tmpdir(), 'gantry-volume-'));
  });
  after(async () => {
    await engine[Symbol.asyncDispose]();
    rmSync(scratch, { recursive: true });
  });

  const volumesRoot = (): string => join(engine.dataRoot, 'volumes');

  async function volume(Name: string, DriverOpts: Record<string, string>): Promise<Volume> {
    const answer = await engine.post<Volume>('/volumes/create', { Name, DriverOpts });
    assert.equal(answer.status, 201, answer.raw.toString());
    return answer.body;
  }

  async function unmounted(): Promise<void> {
    const late = AbortSignal.timeout(60_000);
    while (mountsBelow(volumesRoot()).length > 0) await setTimeout(10, undefined, { signal: late });
  }

  async function shimPid(id: string): Promise<number> {
    return shimOf((await engine.get<Inspect>(`/containers/${id}/json`)).body.State.Pid);
  }

  async function said(id: string, command: string): Promise<string> {
    const body = { Cmd: ['sh', '-c', command], AttachStdout: true, AttachStderr: true };
    const exec = await engine.post<{ Id: string }>(`/containers/${id}/exec`, body);
    const { raw } = await engine.post(`/exec/${exec.body.Id}/start`, {});
    return raw.subarray(8).toString().trim();
  }

  test('a memory file system is there from the first container to the last, for all of them', async () => {
    const made = await volume('memory', tmpfs);
    assert.deepEqual(made.Options, tmpfs);
    assert.deepEqual(mountsBelow(volumesRoot()), []);
    const binds = { ...NONE, Binds: ['memory:/v'] };
    const first = await engine.run(['sleep', '600'], { HostConfig: binds });
    const second = await engine.run(['sleep', '600'], { HostConfig: binds });

    assert.equal(await said(first, 'echo there >/v/file; stat -c %u:%a /v'), '1000:700');
    assert.equal(await said(second, 'cat /v/file'), 'there');
    assert.match(await said(second, 'mount | grep " /v "'), /^tmpfs on \/v type tmpfs \(rw,noexec,.*size=1024k/);
    assert.deepEqual(mountsBelow(volumesRoot()), [made.Mountpoint]);
    await engine.delete(`/containers/${first}?force=1`);
    assert.deepEqual(mountsBelow(volumesRoot()), [made.Mountpoint]);
    assert.equal((await engine.delete<Message>('/volumes/memory')).status, 409);
    await engine.delete(`/containers/${second}?force=1`);

    await unmounted();
    assert.equal((await engine.delete('/volumes/memory')).status, 204);
  });

  test('mounts of another container do not stay with the shim of this one', async () => {
    await volume('elsewhere', tmpfs);
    const owner = await engine.run(['sleep', '600'], { HostConfig: { ...NONE, Binds: ['elsewhere:/v'] } });
    const other = await engine.run(['sleep', '600'], { HostConfig: NONE });
    const shim = String(await shimPid(other));

    await engine.delete(`/containers/${owner}?force=1`);
    await unmounted();

    assert.deepEqual(mountsBelow(volumesRoot(), shim), []);
    await engine.delete(`/containers/${other}?force=1`);
  });

  test('a folder of the machine is bound, and stays when the volume is removed', async () => {
    const folder = join(scratch, 'bound');
    mkdirSync(folder);
    writeFileSync(join(folder, 'mine'), 'kept');
    await volume('bound', { type: 'none', device: folder, o: 'bind' });
    const id = await engine.run(['cat', '/v/mine'], { HostConfig: { ...NONE, Binds: ['bound:/v'] } });
    await engine.wait(id);
    assert.equal((await engine.output(id)).stdout, 'kept');
    await engine.delete(`/containers/${id}`);
    await unmounted();

    // As if a crash had left it: the removal takes away what is mounted, and never what it shows.
    execFileSync('mount', ['--bind', folder, join(volumesRoot(), 'bound/_data')]);
    assert.equal((await engine.delete('/volumes/bound')).status, 204);

    assert.equal(readFileSync(join(folder, 'mine'), 'utf8'), 'kept');
    assert.deepEqual(mountsBelow(volumesRoot()), []);
  });

  test('an empty one is filled with the files of the image, and copied into while the container is stopped', async () => {
    const folder = join(scratch, 'filled');
    mkdirSync(folder);
    await volume('filled', { type: 'none', device: folder, o: 'bind' });
    const id = await engine.create(['true'], { HostConfig: { ...NONE, Binds: ['filled:/bin'] } });

    assert.ok(readFileSync(join(folder, 'busybox')).length > 100_000);
    const { raw, status } = await engine.get(`/containers/${id}/archive?path=/bin/busybox`);
    assert.equal(status, 200);
    assert.ok(raw.length > 100_000);
    await unmounted();
    await engine.delete(`/containers/${id}`);
  });

  for (const signal of ['SIGKILL', 'SIGTERM'] as const) {
    test(`it outlives a daemon that ends by ${signal}, as its container does`, async () => {
      const name = `outlives-${signal.toLowerCase()}`;
      const made = await volume(name, tmpfs);
      const binds = { ...NONE, Binds: [`${name}:/v`] };
      const first = await engine.run(['sleep', '600'], { HostConfig: binds });
      await said(first, 'echo before >/v/file');

      await engine.kill(signal);
      await engine.startAgain();

      const second = await engine.run(['sleep', '600'], { HostConfig: binds });
      assert.equal(await said(second, 'cat /v/file'), 'before');
      assert.deepEqual(mountsBelow(volumesRoot()), [made.Mountpoint]);
      await engine.delete(`/containers/${second}?force=1`);
      assert.deepEqual(mountsBelow(volumesRoot()), [made.Mountpoint]);
      await engine.delete(`/containers/${first}?force=1`);
      await unmounted();
    });
  }

  test('mounts of a container that ended without a daemon are unmounted by the next one', async () => {
    await volume('orphan', tmpfs);
    const id = await engine.run(['sleep', '600'], { HostConfig: { ...NONE, Binds: ['orphan:/v'] } });
    const { Pid } = (await engine.get<Inspect>(`/containers/${id}/json`)).body.State;
    await engine.kill('SIGKILL');
    process.kill(Pid, 'SIGKILL');

    await engine.startAgain();

    await unmounted();
    assert.equal(await engine.wait(id), 137);
  });

  test('a missing device fails the start with the reason of the kernel, and again when it is repeated', async () => {
    await volume('nowhere', { type: 'none', device: '/nowhere/at/all', o: 'bind' });
    const id = await engine.create(['true'], { HostConfig: { ...NONE, Binds: ['nowhere:/v'] } });

    for (let attempt = 0; attempt < 2; attempt += 1) {
      const { status, body } = await engine.post<Message>(`/containers/${id}/start`);
      assert.equal(status, 500);
      assert.match(body.message, /mount \/nowhere\/at\/all:.*, flags: 0x1000: no such file or directory$/);
    }
    assert.equal((await engine.delete(`/containers/${id}`)).status, 204);
  });
});

/** Names are the same on both, places are not. */
function withoutPlaces(text: string): string {
  return text.replaceAll(/\/\S*?\/volumes\//g, '/volumes/');
}

async function answersTo(api: Api, name: string, options: Record<string, string>): Promise<unknown[]> {
  const made = await api.post<Message & Volume>('/volumes/create', { Name: name, DriverOpts: options });
  if (made.status !== 201) return [made.status, made.body.message];
  const body = { Image: 'busybox', Cmd: ['true'], HostConfig: { ...NONE, Binds: [`${name}:/v`] } };
  const created = await api.post<{ Id: string }>('/containers/create', body);
  const started = await api.post<Message>(`/containers/${created.body.Id}/start`);
  await api.post(`/containers/${created.body.Id}/wait`);
  await api.delete(`/containers/${created.body.Id}?force=1`);
  const removed = await api.delete(`/volumes/${name}`);
  const message = started.status === 204 ? '' : withoutPlaces(started.body.message);
  return [made.body.Options, created.status, started.status, message, removed.status];
}

test('options are taken and refused as by dockerd, at the same step and in the same words', async () => {
  await using ours = await TestEngine.start();
  await using dockerd = await Dockerd.start(['--bridge=none']);
  await dockerd.api.post('/images/load?quiet=1', await busyboxArchive());

  const bodies: Record<string, string>[] = [
    {},
    { colour: 'red' },
    { type: 'tmpfs' },
    { o: 'bind' },
    { size: '10m' },
    { size: '0' },
    { type: '', device: '' },
    { type: 'tmpfs', device: '' },
    { type: 'tmpfs', device: 'tmpfs', o: 'size=1m,noexec' },
    { type: 'tmpfs', device: 'tmpfs', o: 'colour=red' },
    { type: 'tmpfs', device: 'tmpfs', o: 'defaults' },
    { type: 'none', device: '/nowhere', o: 'bind' },
    { type: 'none', device: '/usr', o: 'bind,ro' },
    { type: 'nofs', device: 'x' },
    // No server is there, and perhaps no such file system: the refusal shows what the kernel was asked for.
    { type: 'nfs', device: ':/exported', o: 'addr=localhost,ro,nfsvers=4,soft,timeo=1,retrans=0' },
    { type: 'nfs', device: ':/exported/deeper', o: 'nolock,hard,addr=127.0.0.1,noatime,rw,retry=0' },
    { type: 'nfs4', device: '127.0.0.1:/exported', o: 'addr=127.0.0.1,nosuid,retrans=0,timeo=1,soft' },
    { type: 'cifs', device: '//localhost/share', o: 'addr=localhost,username=who,password=secret,vers=3.0' },
  ];
  for (const [at, options] of bodies.entries()) {
    const name = `vol-${at}`;
    const [mine, theirs] = [await answersTo(ours, name, options), await answersTo(dockerd.api, name, options)];
    assert.deepEqual(mine, theirs, JSON.stringify(options));
  }
});
