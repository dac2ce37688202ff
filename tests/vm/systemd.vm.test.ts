import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { readFile, readlink, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { promisify } from 'node:util';

import { Api } from '@gantry/testing/api.ts';
import { busyboxArchive } from '@gantry/testing/busybox-image.ts';
import { shimOf } from '@gantry/testing/shim-of.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

const repository = dirname(dirname(import.meta.dirname));
const execute = promisify(execFile);
const HOST = { HostConfig: { NetworkMode: 'none', Memory: 64 << 20, PidsLimit: 55 } };
const LIMITS = {
  ...{ Memory: 64 << 20, MemorySwap: 96 << 20, MemoryReservation: 32 << 20, PidsLimit: 55, BlkioWeight: 300 },
  ...{ CpuShares: 512, CpuPeriod: 50_000, CpuQuota: 20_000, CpusetCpus: '1' },
};
const FILES = 'memory.max memory.swap.max memory.low pids.max io.weight cpu.weight cpu.max cpuset.cpus'.split(' ');
const PLACE = '/system.slice';

suite('systemd as the owner of the cgroups', { concurrency: false }, () => {
  let engine: TestEngine;
  /** The disk of the machine, which no container may open. */
  const tryDevice = async (id: string): Promise<string> => {
    const Cmd = ['sh', '-c', 'mknod /disk b 254 0; head -c 1 /disk; mknod /disk2 b 253 0; head -c 1 /disk2'];
    const exec = await engine.post<{ Id: string }>(`/containers/${id}/exec`, { Cmd, AttachStdout: true, Tty: true });
    return (await engine.post(`/exec/${exec.body.Id}/start`, { Tty: true })).raw.toString();
  };
  before(async () => (engine = await TestEngine.start()));
  after(async () => await engine[Symbol.asyncDispose]());

  for (const runtime of ['crun', 'runc']) {
    test(`a container of ${runtime} is a scope, and a reload of systemd keeps its limits, those of an update too`, async () => {
      const limits = { ...LIMITS, Runtime: runtime, NetworkMode: 'none' };
      const id = await engine.run(['sleep', '1000'], { HostConfig: limits });
      const scope = `docker-${id}.scope`;
      const atStart = filesOf(scope);

      await systemctl('daemon-reload');

      assert.deepEqual(filesOf(scope), atStart);
      assert.equal(await property(scope, 'ActiveState'), 'active');
      assert.equal(await property(scope, 'MemoryMax'), String(64 << 20));
      const { stdout } = await execute('systemd-cgls', ['--no-pager', '--full']);
      assert.match(stdout, new RegExp(`${scope}[\\s\\S]{1,400}?sleep 1000`));
      const update = {
        Memory: 80 << 20,
        MemorySwap: 90 << 20,
        CpuQuota: 33_333,
        CpuShares: 2048,
        CpusetCpus: '0-1',
      };
      const { status, raw } = await engine.post(`/containers/${id}/update`, update);
      assert.equal(status, 200, raw.toString());
      const updated = filesOf(scope);
      assert.deepEqual(updated, {
        ...atStart,
        ...{ 'memory.max': `${80 << 20}`, 'memory.swap.max': `${10 << 20}` },
        ...{ 'cpu.max': '33333 50000', 'cpu.weight': '79', 'cpuset.cpus': '0-1' },
        'io.weight': 'default 2930', // where BFQ is loaded, crun 1.21 let systemd write another one at the start
      });
      await systemctl('daemon-reload');
      // systemd 252 writes its own count of CPU time then, in whole percents; 257 writes nothing anew.
      const reloaded = filesOf(scope);
      assert.match(reloaded['cpu.max']!, /^33(?:333|500) 50000$/);
      assert.deepEqual({ ...reloaded, 'cpu.max': '' }, { ...updated, 'cpu.max': '' });
      assert.match(await tryDevice(id), /not permitted/);
      await engine.delete(`/containers/${id}?force=1`);
      await isGone(scope);
    });
  }

  test('an update that a SIGKILL of the daemon cuts off counts wholly or not at all, for systemd too', async () => {
    const id = await engine.run(['sleep', '1000'], { HostConfig: { ...HOST.HostConfig, CpuShares: 512 } });
    const scope = `docker-${id}.scope`;
    for (let round = 0; round < 10; round += 1) {
      const updates = Array.from({ length: 20 }, (_, index) =>
        engine.post(`/containers/${id}/update`, {
          Memory: (70 + index + round) << 20,
          MemorySwap: -1,
          CpuShares: 2000 + 1000 * index,
        }),
      );
      const answered = Promise.allSettled(updates);
      await setTimeout(100 * round); // cuts each time at another place
      await engine.kill();
      await answered;
      await engine.startAgain();

      const { body } = await engine.get<{ HostConfig: { Memory: number } }>(`/containers/${id}/json`);
      const expected = String(body.HostConfig.Memory);
      await becomes(expected, () => filesOf(scope)['memory.max']);
      await systemctl('daemon-reload');
      const { 'memory.max': memory, 'cpu.weight': weight } = filesOf(scope);
      assert.deepEqual([memory, await property(scope, 'MemoryMax')], [expected, expected]);
      assert.equal(await property(scope, 'CPUWeight'), weight);
    }
    await engine.delete(`/containers/${id}?force=1`);
    await isGone(scope);
  });

  test('a slice can be named, and nothing else', async () => {
    const HostConfig = { ...HOST.HostConfig, CgroupParent: 'gantrytest-inner.slice' };
    const id = await engine.run(['sleep', '1000'], { HostConfig });
    const refused = await engine.post('/containers/create', {
      Image: 'busybox',
      HostConfig: { CgroupParent: '/other' },
    });

    assert.ok(existsSync(`/sys/fs/cgroup/gantrytest.slice/gantrytest-inner.slice/docker-${id}.scope`));
    assert.deepEqual(
      [refused.status, refused.body],
      [400, { message: 'cgroup-parent for systemd cgroup should be a valid slice named as "xxx.slice"' }],
    );
    await engine.delete(`/containers/${id}?force=1`);
    await isGone(`docker-${id}.scope`);
    await execute('systemctl', ['stop', 'gantrytest.slice']); // systemd keeps a slice that it has made
  });

  test('nothing is left of a container after its shim was killed', async () => {
    const id = await engine.run(['sleep', '1000'], HOST);

    process.kill(shimOf(await pidOf(engine, id)), 'SIGKILL');
    await engine.wait(id);

    await isGone(`docker-${id}.scope`);
    await engine.delete(`/containers/${id}`);
  });

  test('with the driver cgroupfs containers of the other one are found again', async () => {
    const id = await engine.run(['sleep', '1000'], HOST);
    await using other = await TestEngine.start({ flags: ['--exec-opt=native.cgroupdriver=cgroupfs'] });
    const plain = await other.run(['sleep', '1000'], HOST);

    assert.ok(existsSync(`/sys/fs/cgroup/docker/${plain}/memory.max`));
    assert.equal((await other.get<{ CgroupDriver: string }>('/info')).body.CgroupDriver, 'cgroupfs');
    assert.equal((await engine.get<{ Processes: string[][] }>(`/containers/${id}/top`)).body.Processes.length, 1);
    assert.equal((await other.get<{ Processes: string[][] }>(`/containers/${plain}/top`)).body.Processes.length, 1);
    await engine.delete(`/containers/${id}?force=1`);
  });
});

suite('gantry.service', { concurrency: false }, () => {
  let service: Service;
  before(async () => (service = await Service.start()));
  after(async () => await service[Symbol.asyncDispose]());

  test('a restart of gantry.service leaves its containers running, and a stop too', async () => {
    const created = await service.api.post<{ Id: string }>('/containers/create', {
      ...{ Image: 'busybox', Cmd: ['sh', '-c', 'while :; do echo tick; sleep 1; done'] },
      ...HOST,
    });
    const id = created.body.Id;
    await service.api.post(`/containers/${id}/start`);
    const atFirst = await service.state(id);

    assert.equal(await property('gantry.service', 'ManagedOOMPreference'), 'avoid'); // its cgroup has the shims
    await systemctl('restart', 'gantry.service');
    await service.answers();

    assert.deepEqual(await service.state(id), atFirst);
    await systemctl('kill', '--kill-whom=main', '--signal=KILL', 'gantry.service');
    await service.answers(); // Restart=always
    assert.deepEqual(await service.state(id), atFirst);
    await systemctl('stop', 'gantry.service');
    await systemctl('daemon-reload');
    process.kill(atFirst.pid, 0);
    await systemctl('start', 'gantry.service');
    await service.answers();
    assert.deepEqual(await service.state(id), atFirst);
    await service.isUsable(id);
    await service.api.delete(`/containers/${id}?force=1`);
    await isGone(`docker-${id}.scope`);
  });

  test('an upgrade of gantry.service leaves its containers running, and the new daemon rules them', async () => {
    const created = await service.api.post<{ Id: string }>('/containers/create', {
      ...{ Image: 'busybox', Cmd: ['sleep', '1000'] },
      ...HOST,
    });
    const id = created.body.Id;
    await service.api.post(`/containers/${id}/start`);
    const atFirst = await service.state(id);
    await using parts = new AsyncDisposableStack();
    const description = join(repository, 'engine/package.json');
    const shim = join(repository, 'build/gantry-shim');
    const text = await readFile(description, 'utf8');
    parts.defer(async () => await replaceFile(description, text));

    // A later package unpacks other files under the same names.
    await replaceFile(description, text.replace(/("version": )"[^"]+"/, '$1"99.0.0"'));
    await replaceFile(shim, await readFile(shim));
    await systemctl('daemon-reload');
    await systemctl('restart', 'gantry.service');
    await service.answers();

    assert.equal((await service.api.get<{ Version: string }>('/version')).body.Version, '99.0.0');
    assert.deepEqual(await service.state(id), atFirst);
    assert.match(await readlink(`/proc/${shimOf(atFirst.pid)}/exe`), /gantry-shim \(deleted\)$/);
    await service.isUsable(id);
    await service.api.post(`/containers/${id}/restart?t=0`);
    const anew = await service.state(id);
    assert.equal(anew.status, 'running');
    assert.equal(await readlink(`/proc/${shimOf(anew.pid)}/exe`), shim);
    await service.api.delete(`/containers/${id}?force=1`);
    await isGone(`docker-${id}.scope`);
  });
});

/** The unit as it is shipped, with this checkout in the place of /opt/gantry. */
class Service implements AsyncDisposable {
  readonly api = new Api('/run/gantry/gantry.sock');

  static async start(): Promise<Service> {
    const unit = await readFile(join(repository, 'packaging/gantry.service'), 'utf8');
    await writeFile('/run/systemd/system/gantry.service', unit.replaceAll('/opt/gantry', repository));
    await systemctl('daemon-reload');
    await systemctl('start', 'gantry.service');
    const service = new Service();
    await service.answers();
    await service.api.post('/images/load?quiet=1', await busyboxArchive());
    return service;
  }

  async answers(): Promise<void> {
    for (;;) {
      try {
        if ((await this.api.get('/_ping')).status === 200) return;
      } catch {
        await setTimeout(200); // it does not listen yet
      }
    }
  }

  async state(id: string): Promise<{ status: string; pid: number }> {
    const { body } = await this.api.get<{ State: { Status: string; Pid: number } }>(`/containers/${id}/json`);
    return { status: body.State.Status, pid: body.State.Pid };
  }

  /** An exec in it works, and its end is told. */
  async isUsable(id: string): Promise<void> {
    const made = await this.api.post<{ Id: string }>(`/containers/${id}/exec`, { Cmd: ['true'], AttachStdout: true });
    await this.api.post(`/exec/${made.body.Id}/start`, {});
    assert.equal((await this.api.get<{ ExitCode: number }>(`/exec/${made.body.Id}/json`)).body.ExitCode, 0);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.api[Symbol.dispose]();
    await systemctl('stop', 'gantry.service');
    await rm('/run/systemd/system/gantry.service');
    await systemctl('daemon-reload');
    for (const folder of ['/var/lib/gantry', '/run/gantry']) await rm(folder, { recursive: true, force: true });
  }
}

async function replaceFile(file: string, contents: string | Buffer): Promise<void> {
  const { mode } = await stat(file);
  await writeFile(`${file}.new`, contents, { mode });
  await rename(`${file}.new`, file);
}

function filesOf(scope: string): Record<string, string> {
  const read = (file: string): string => readFileSync(`/sys/fs/cgroup${PLACE}/${scope}/${file}`, 'utf8').trim();
  return Object.fromEntries(FILES.map((file) => [file, read(file)]));
}

async function systemctl(...words: string[]): Promise<void> {
  await execute('systemctl', words);
}

async function property(unit: string, name: string): Promise<string> {
  const { stdout } = await execute('systemctl', ['show', '--value', `--property=${name}`, unit]);
  return stdout.trim();
}

/** systemd is told of an empty cgroup a moment after it is. */
async function isGone(scope: string): Promise<void> {
  while ((await property(scope, 'LoadState')) !== 'not-found' || existsSync(`/sys/fs/cgroup${PLACE}/${scope}`)) {
    await setTimeout(100);
  }
}

async function becomes(expected: string, read: () => string | undefined): Promise<void> {
  for (const deadline = Date.now() + 300_000; read() !== expected && Date.now() < deadline;) await setTimeout(100);
  assert.equal(read(), expected);
}

async function pidOf(api: Api, id: string): Promise<number> {
  return (await api.get<{ State: { Pid: number } }>(`/containers/${id}/json`)).body.State.Pid;
}
