import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';

import { tarList } from '@gantry/testing/archives/tar-list.ts';

import { BothEngines, type Side } from '../clients/both-engines.ts';
import { said } from '../vm/said.ts';

type Fields = Record<string, unknown>;

const CONTEXT = 'cat /proc/self/attr/current | tr -d "\\0"';

/** HostConfig of containers, with what both daemons do on a machine with SELinux while it is not asked of them. */
const ASKED: readonly Fields[] = [
  {},
  { Privileged: true },
  { PidMode: 'host' },
  { SecurityOpt: ['label=disable'] },
  { SecurityOpt: ['disable'] },
  { SecurityOpt: ['label:disable'] },
  { SecurityOpt: ['label=type:container_t'] },
  { SecurityOpt: ['label=user:system_u', 'label=role:system_r', 'label=level:s0:c100,c200'] },
  { SecurityOpt: ['label=type:no_such_t'] },
  { SecurityOpt: ['label=odd'] },
  { SecurityOpt: ['label=filetype:usr_t'] },
];

suite('a machine with SELinux', { concurrency: false }, () => {
  let engines: BothEngines;
  before(async () => (engines = await BothEngines.start()));
  after(async () => await engines[Symbol.asyncDispose]());

  test('the kernel has a policy, and the daemons have a label', () => {
    assert.equal(readFileSync('/sys/fs/selinux/enforce', 'utf8'), '0');
    assert.match(readFileSync('/proc/self/attr/current', 'utf8'), /^\w+:\w+:\w+/);
  });

  test('/info tells of no security module that confines containers, as dockerd’s', async () => {
    const { ours, theirs } = await engines.both(
      async ({ api }) => (await api.get<{ SecurityOptions: string[] }>('/info')).body.SecurityOptions,
    );

    assert.deepEqual(ours, theirs);
    assert.ok(!ours.some((option) => /selinux|apparmor/.test(option)));
  });

  for (const HostConfig of ASKED) {
    test(`${JSON.stringify(HostConfig)} gives the labels that it gives with dockerd`, async () => {
      const { ours, theirs } = await engines.both(async (side) => await labelsOf(side, HostConfig));

      assert.deepEqual(ours, theirs);
    });
  }

  test('a label without a value is refused in dockerd’s words, as the client’s mistake', async () => {
    const { ours, theirs } = await engines.both(async (side) => await labelsOf(side, { SecurityOpt: ['label'] }));

    const words = 'invalid --security-opt 1: "label"';
    assert.deepEqual(ours, [400, words]);
    assert.deepEqual(theirs, [500, words]);
  });

  test('a bind keeps its label, also with z and Z', async () => {
    for (const mode of ['', ':z', ':Z', ':ro,z']) {
      const { ours, theirs } = await engines.both(async (side) => {
        const folder = join(side.directory, 'bound');
        mkdirSync(folder);
        const before = labelOf(folder);
        const out = await said(side, 'ls -d /bound', { Binds: [`${folder}:/bound${mode}`] });
        const isKept = labelOf(folder) === before;
        rmSync(folder, { recursive: true });
        return { out, isKept };
      });

      assert.deepEqual([mode, ours], [mode, theirs]);
      assert.deepEqual(ours, { out: '/bound\n', isKept: true });
    }
  });

  test('an image and a copy of a container have no labels of this machine', async () => {
    const { api } = engines.ours;
    const body = { Image: 'busybox', Cmd: ['touch', '/made'], HostConfig: { NetworkMode: 'none' } };
    const { Id } = (await api.post<{ Id: string }>('/containers/create', body)).body;
    await api.post(`/containers/${Id}/start`);
    await api.post(`/containers/${Id}/wait`);
    const { GraphDriver } = (await api.get<{ GraphDriver: { Data: { UpperDir: string } } }>(`/containers/${Id}/json`))
      .body;
    assert.match(labelOf(join(GraphDriver.Data.UpperDir, 'made')), /^\w+:\w+:\w+/);

    const committed = await api.post(`/commit?container=${Id}&repo=labelled`);
    const saved = (await api.get('/images/labelled/get')).raw;
    const copied = (await api.get(`/containers/${Id}/archive?path=/made`)).raw;

    assert.equal(committed.status, 201);
    assert.deepEqual([...tarList(copied).keys()], ['made']);
    for (const archive of [saved, copied]) assert.ok(!archive.includes('security.selinux'));
    await api.delete(`/containers/${Id}?force=1`);
  });
});

/** The container’s labels in answers, and those of its first process and an exec. */
async function labelsOf({ api }: Side, HostConfig: Fields): Promise<unknown> {
  const body = {
    Image: 'busybox',
    Cmd: ['sh', '-c', `${CONTEXT}; exec sleep 1000`],
    HostConfig: { NetworkMode: 'none', ...HostConfig },
  };
  const created = await api.post<{ Id: string; message: string }>('/containers/create', body);
  if (created.status !== 201) return [created.status, created.body.message];
  const { Id } = created.body;
  const start = await api.post(`/containers/${Id}/start`);
  const shown = (await api.get<Fields & { HostConfig: Fields; State: { Pid: number } }>(`/containers/${Id}/json`)).body;
  const first = start.status === 204 ? readFileSync(`/proc/${shown.State.Pid}/attr/current`, 'utf8') : '';
  const exec = await api.post<{ Id: string }>(`/containers/${Id}/exec`, {
    ...{ Cmd: ['sh', '-c', CONTEXT], AttachStdout: true, Tty: true },
  });
  const inExec = (await api.post(`/exec/${exec.body.Id}/start`, { Tty: true })).raw.toString();
  await api.delete(`/containers/${Id}?force=1`);
  const { ProcessLabel, MountLabel } = shown;
  // dockerd adds `label=disable` to containers that share a namespace with the machine.
  const options = HostConfig['SecurityOpt'] === undefined ? undefined : shown.HostConfig['SecurityOpt'];
  return { start: start.status, first, inExec, ProcessLabel, MountLabel, options };
}

function labelOf(path: string): string {
  return execFileSync('stat', ['-c', '%C', path], { encoding: 'utf8' });
}
