import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';

import { unframe } from '@gantry/client/frames.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

const LIST = [
  'ls -ln /dev/cdi-null /dev/cdi-zero 2>/dev/null | sed "s/  */ /g" | cut -d" " -f1,3-6',
  'cat /cdi-file 2>/dev/null; grep " /cdi-file " /proc/mounts | cut -d" " -f4 | cut -d, -f1',
  'env | grep CDI | sort',
].join('; ');

/** Outcomes are those of dockerd 28.5. */
suite('devices of the Container Device Interface', { concurrency: false }, () => {
  let engine: TestEngine;
  let folder: string;
  let hooked: string;

  const spec = (kind: string, devices: object[], more: object = {}): string =>
    JSON.stringify({ cdiVersion: '0.6.0', kind, devices, ...more });
  const put = async (place: string, text: string): Promise<void> => await writeFile(join(folder, place), text);

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'cdi-'));
    await Promise.all(['etc', 'run'].map(async (name) => await mkdir(join(folder, name))));
    hooked = join(folder, 'hooked');
    await writeFile(join(folder, 'file'), 'of the driver\n');
    const one = {
      env: ['CDI_ONE=1'],
      deviceNodes: [
        { path: '/dev/cdi-null', hostPath: '/dev/null', permissions: 'rw', uid: 7, gid: 8, fileMode: 0o660 },
      ],
      mounts: [{ hostPath: join(folder, 'file'), containerPath: '/cdi-file', options: ['ro', 'bind'] }],
      hooks: [{ hookName: 'createRuntime', path: '/bin/sh', args: ['sh', '-c', `cat >/dev/null; echo x > ${hooked}`] }],
    };
    const two = { env: ['CDI_TWO=1'], deviceNodes: [{ path: '/dev/cdi-zero', hostPath: '/dev/zero' }] };
    const devices = [
      { name: 'one', containerEdits: one },
      { name: 'two', containerEdits: two },
    ];
    await put('run/acme.json', spec('acme.com/thing', devices, { containerEdits: { env: ['CDI_ALL=1'] } }));
    const flags = ['etc', 'run'].map((name) => `--cdi-spec-dir=${join(folder, name)}`);
    engine = await TestEngine.start({ version: '1.51', flags });
  });
  after(async () => {
    await engine[Symbol.asyncDispose]();
    await rm(folder, { recursive: true });
  });

  async function run(requests: object[], script = LIST): Promise<string | [number, string]> {
    const { body: made } = await engine.post<{ Id: string }>('/containers/create', {
      ...{ Image: 'busybox', Cmd: ['sh', '-c', script], HostConfig: { DeviceRequests: requests } },
    });
    const started = await engine.post<{ message: string }>(`/containers/${made.Id}/start`);
    await engine.post(`/containers/${made.Id}/wait`);
    const { raw } = await engine.get(`/containers/${made.Id}/logs?stdout=1`);
    await engine.delete(`/containers/${made.Id}`);
    return started.status === 204 ? unframe(raw).stdout : [started.status, started.body.message];
  }

  const cdi = (...DeviceIDs: string[]): object => ({ Driver: 'cdi', DeviceIDs });
  const ofOne = 'crw-rw---- 7 8 1, 3\n';
  const zero = 'crw-rw-rw- 0 0 1, 5\n';
  const file = 'of the driver\nro\n';

  test('node, mount, environment and hook of a device', async () => {
    assert.equal(await run([cdi('acme.com/thing=one')]), `${ofOne}${file}CDI_ALL=1\nCDI_ONE=1\n`);
    assert.ok(existsSync(hooked));
  });

  test('several devices, in one request and in two', async () => {
    const both = `${ofOne}${zero}${file}CDI_ALL=1\nCDI_ONE=1\nCDI_TWO=1\n`;

    assert.equal(await run([cdi('acme.com/thing=one', 'acme.com/thing=two')]), both);
    assert.equal(await run([cdi('acme.com/thing=one'), cdi('acme.com/thing=two')]), both);
  });

  test('a device twice counts once, and its node can be used', async () => {
    const { stdout } = {
      stdout: await run([cdi('acme.com/thing=two', 'acme.com/thing=two')], 'head -c 3 /dev/cdi-zero | wc -c'),
    };

    assert.equal(stdout, '3\n');
  });

  test('devices that no file has', async () => {
    assert.deepEqual(await run([cdi('acme.com/thing=three', 'odd', 'acme.com/thing=one')]), [
      500,
      'CDI device injection failed: unresolvable CDI devices acme.com/thing=three, odd',
    ]);
  });

  test('a count and options are refused', async () => {
    const device = cdi('acme.com/thing=one');

    assert.deepEqual(await run([{ ...device, Count: 1 }]), [500, 'unexpected count in CDI device request']);
    assert.deepEqual(await run([{ ...device, Options: { a: 'b' } }]), [
      500,
      'unexpected options in CDI device request',
    ]);
  });

  test('YAML, a file that is none, and files that come and go', async () => {
    await put(
      'etc/plain.yaml',
      'cdiVersion: "0.5.0"\nkind: acme.com/plain\ndevices:\n- name: x\n  containerEdits:\n    env: [CDI_YAML=1]\n',
    );
    await put('etc/broken.json', '{');
    await put('etc/other.json', '{"cdiVersion":"0.6.0","kind":"","devices":[]}');
    await put('etc/ignored.yml', 'kind: acme.com/ignored');

    assert.equal(await run([cdi('acme.com/plain=x')]), 'CDI_YAML=1\n');
    const { body } = await engine.get<{ CDISpecDirs: string[]; DiscoveredDevices: object[] }>('/info');
    assert.deepEqual(body.CDISpecDirs, [join(folder, 'etc'), join(folder, 'run')]);
    assert.deepEqual(
      body.DiscoveredDevices,
      ['plain=x', 'thing=one', 'thing=two'].map((name) => ({ Source: 'cdi', ID: `acme.com/${name}` })),
    );
  });

  test('a later folder goes before, and two files of one folder refuse each other', async () => {
    const changed = (value: string): string =>
      spec('acme.com/thing', [{ name: 'two', containerEdits: { env: [`CDI_TWO=${value}`] } }]);
    await put('etc/thing.json', changed('etc'));
    assert.equal(await run([cdi('acme.com/thing=two')]), `${zero}CDI_ALL=1\nCDI_TWO=1\n`);

    await put('run/again.json', changed('run'));
    assert.deepEqual(await run([cdi('acme.com/thing=two')]), [
      500,
      'CDI device injection failed: unresolvable CDI devices acme.com/thing=two',
    ]);
  });
});
