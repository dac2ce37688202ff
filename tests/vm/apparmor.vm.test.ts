import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { after, before, suite, test } from 'node:test';
import { promisify } from 'node:util';

import { BothEngines, type Side } from '../clients/both-engines.ts';
import { said } from './said.ts';

const execute = promisify(execFile);
const PROFILE = 'cat /proc/self/attr/current';
const ABLE = { CapAdd: ['ALL'], SecurityOpt: ['seccomp=unconfined'] };
/** Without these the runtimes alone would keep them from being written. */
const OPEN = { ...ABLE, MaskedPaths: [], ReadonlyPaths: [] };

/** Trials of a container, with their fields of HostConfig. */
const TRIALS: readonly (readonly [string, string, Record<string, unknown>])[] = [
  ['the usual profile confines', PROFILE, {}],
  ['unconfined is not', PROFILE, { SecurityOpt: ['apparmor=unconfined'] }],
  ['unconfined can be said with a colon', PROFILE, { SecurityOpt: ['apparmor:unconfined'] }],
  ['a privileged container is not confined', PROFILE, { Privileged: true }],
  ['mounts are refused, whatever the capabilities are', 'mount -t tmpfs none /tmp; echo $?', ABLE],
  [
    'and allowed where nothing confines',
    'mount -t tmpfs none /tmp; echo $?',
    { ...ABLE, SecurityOpt: ['seccomp=unconfined', 'apparmor=unconfined'] },
  ],
  [
    'settings of the kernel cannot be written',
    'for f in kernel/hostname kernel/shmmni vm/swappiness; do cat /proc/sys/$f >/tmp/v; cat /tmp/v >/proc/sys/$f; echo $f $?; done',
    OPEN,
  ],
  ['nor can the kernel be told to crash', 'echo h >/proc/sysrq-trigger; echo $?; head -c 1 /proc/kcore; echo $?', OPEN],
  [
    'a process may signal and watch others of its container',
    '(sleep 100 & kill $!; wait $!; echo $?) 2>/dev/null; cat /proc/1/environ >/dev/null; echo $?',
    {},
  ],
];

suite('AppArmor', { concurrency: false }, () => {
  let engines: BothEngines;
  before(async () => (engines = await BothEngines.start()));
  after(async () => await engines[Symbol.asyncDispose]());

  for (const [what, script, HostConfig] of TRIALS) {
    test(`${what}, as with dockerd`, async () => {
      const { ours, theirs } = await engines.both(async (side) => normalised(await said(side, script, HostConfig)));

      assert.equal(ours, theirs);
    });
  }

  test('inspect tells the profile, and an exec has it', async () => {
    for (const SecurityOpt of [null, ['apparmor=unconfined']]) {
      const { ours, theirs } = await engines.both(async (side) => await profiles(side, SecurityOpt));

      assert.deepEqual(ours, theirs);
    }
  });

  test('a profile that is not there fails the start', async () => {
    const { ours, theirs } = await engines.both(async ({ api }) => {
      const body = { Image: 'busybox', Cmd: ['true'], HostConfig: { SecurityOpt: ['apparmor=no-such-profile'] } };
      const { Id } = (await api.post<{ Id: string }>('/containers/create', body)).body;
      return (await api.post(`/containers/${Id}/start`)).status;
    });

    assert.equal(ours, theirs);
  });

  test('the profile is loaded again when it was taken away', async () => {
    await execute('sh', ['-c', 'printf gantry-default >/sys/kernel/security/apparmor/.remove']);
    assert.doesNotMatch(readFileSync('/sys/kernel/security/apparmor/profiles', 'utf8'), /gantry-default/);

    assert.match(await said(engines.ours, PROFILE, {}), /gantry-default \(enforce\)/);
  });
});

async function profiles({ api }: Side, SecurityOpt: string[] | null): Promise<unknown> {
  const body = { Image: 'busybox', Cmd: ['sleep', '1000'], HostConfig: { SecurityOpt, NetworkMode: 'none' } };
  const { Id } = (await api.post<{ Id: string }>('/containers/create', body)).body;
  const shown: (string | undefined)[] = [await profileOf()];
  await api.post(`/containers/${Id}/start`);
  shown.push(await profileOf());
  const words = { Cmd: ['cat', '/proc/self/attr/current'], AttachStdout: true, Tty: true };
  const exec = (await api.post<{ Id: string }>(`/containers/${Id}/exec`, words)).body.Id;
  shown.push((await api.post(`/exec/${exec}/start`, { Tty: true })).raw.toString());
  await api.delete(`/containers/${Id}?force=1`);
  return shown.map((text) => normalised(text ?? ''));

  async function profileOf(): Promise<string> {
    return (await api.get<{ AppArmorProfile: string }>(`/containers/${Id}/json`)).body.AppArmorProfile;
  }
}

function normalised(text: string): string {
  return text.replaceAll(/(gantry|docker)-default/g, 'usual');
}
