/** Rows of docs/compatibility.md that no domain's own test asserts. */
import assert from 'node:assert/strict';
import { mkdtempDisposableSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';

import type { Inspect } from '@gantry/engine/containers/schema.ts';
import type { NetworkWire } from '@gantry/engine/networks/schema.ts';
import { tarList } from '@gantry/testing/archives/tar-list.ts';
import { TarWriter } from '@gantry/testing/archives/tar-writer.ts';
import { TestPlugin } from '@gantry/testing/plugin.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

type Message = { message: string };

suite('deliberate differences from dockerd', { concurrency: false }, () => {
  const plugins = mkdtempDisposableSync(join(tmpdir(), 'gantry-differences-'));
  let engine: TestEngine;
  before(async () => {
    engine = await TestEngine.start({ flags: [`--plugin-folder=${plugins.path}`] });
  });
  after(async () => {
    await engine[Symbol.asyncDispose]();
    plugins.remove();
  });

  const inspect = async (ref: string): Promise<Inspect> => (await engine.get<Inspect>(`/containers/${ref}/json`)).body;
  const namesOf = async (path: string): Promise<string[]> => {
    const { body } = await engine.get<{ Names?: string[]; Name?: string }[]>(path);
    return body.map(({ Names, Name }) => Name ?? Names![0]!.slice(1)).toSorted();
  };

  test('changes are sorted by path', async () => {
    const id = await engine.run(['sh', '-c', 'mkdir /z /a; touch /z/2 /z/1 /a/0; rm /bin/vi; mkdir /m']);
    await engine.wait(id);

    const { body } = await engine.get<{ Path: string }[]>(`/containers/${id}/changes`);

    const paths = body.map(({ Path }) => Path);
    assert.ok(paths.includes('/z/1') && paths.includes('/bin/vi'));
    assert.deepEqual(paths, paths.toSorted());
  });

  test('the removal of a container breaks its export', async () => {
    const id = await engine.run(['sh', '-c', 'dd if=/dev/zero of=/large bs=1M count=256 2>&1']);
    await engine.wait(id);
    const body = await engine.stream('GET', `/containers/${id}/export`);
    const chunks = body[Symbol.asyncIterator]();
    await chunks.next();

    assert.equal((await engine.delete(`/containers/${id}`)).status, 204);

    await assert.rejects(async () => {
      let bytes = 0;
      for (let next = await chunks.next(); next.done !== true; next = await chunks.next())
        bytes += (next.value as Buffer).length;
      assert.fail(`the export went on to its end, ${bytes} bytes later`);
    }, /aborted|reset|socket|terminated/i);
  });

  test('an invalid pattern in a filter of names matches itself alone, and hides no other filter', async () => {
    await engine.create(['true'], {}, 'plain-name');
    const filtered = (...name: string[]): string =>
      `/containers/json?all=1&filters=${encodeURIComponent(JSON.stringify({ name }))}`;

    assert.deepEqual(await namesOf(filtered('plain-[')), []);
    assert.deepEqual(await namesOf(filtered('plain-[', 'plain-n')), ['plain-name']);
  });

  test('the sandbox of a container: of a running one its process, of a stopped one nothing', async () => {
    const id = await engine.run(['sleep', '1000']);
    const running = await inspect(id);
    await engine.post(`/containers/${id}/kill`);
    await engine.wait(id);
    const stopped = (await inspect(id)).NetworkSettings;

    assert.equal(running.NetworkSettings.SandboxKey, `/proc/${running.State.Pid}/ns/net`);
    assert.notEqual(running.NetworkSettings.SandboxID, '');
    assert.deepEqual([stopped.SandboxID, stopped.SandboxKey], ['', '']);
    assert.deepEqual([running.NetworkSettings.Bridge, stopped.Bridge], ['', '']);
  });

  test('an IPv6 range in a network without IPv6 is shown, and does not count', async () => {
    const IPAM = { Config: [{ Subnet: '10.77.0.0/24' }, { Subnet: 'fd00:77::/64' }] };
    assert.equal((await engine.post('/networks/create', { Name: 'ranges', IPAM })).status, 201);

    const { body } = await engine.get<NetworkWire>('/networks/ranges');
    const id = await engine.run(['sleep', '1000'], { HostConfig: { NetworkMode: 'ranges' } });
    const endpoint = (await inspect(id)).NetworkSettings.Networks['ranges']!;

    assert.deepEqual(
      body.IPAM.Config?.map(({ Subnet }) => Subnet),
      ['10.77.0.0/24', 'fd00:77::/64'],
    );
    assert.deepEqual([body.EnableIPv6, endpoint.GlobalIPv6Address], [false, '']);
    assert.match(endpoint.IPAddress, /^10\.77\.0\./);
  });

  test('the link of a bridge with IPv6 has no address fe80::1', async () => {
    const IPAM = { Config: [{ Subnet: 'fd00:78::/64' }] };
    assert.equal((await engine.post('/networks/create', { Name: 'six', EnableIPv6: true, IPAM })).status, 201);

    const addresses = await engine.onHost(['ip', '-6', '-brief', 'address']);

    assert.match(addresses, /fd00:78::1\/64/);
    assert.doesNotMatch(addresses, /fe80::1\//);
  });

  test('the address of a container in a macvlan network has to be in one of its ranges', async () => {
    await engine.onHost(['ip', 'link', 'add', 'parent0', 'type', 'veth', 'peer', 'name', 'parent1']);
    const made = await engine.post('/networks/create', {
      Name: 'vlan',
      Driver: 'macvlan',
      Options: { parent: 'parent0' },
      IPAM: { Config: [{ Subnet: '10.79.0.0/24' }] },
    });
    assert.equal(made.status, 201);
    const id = await engine.run(['sleep', '1000']);

    const { status, body } = await engine.post<Message>('/networks/vlan/connect', {
      Container: id,
      EndpointConfig: { IPAMConfig: { IPv4Address: '10.80.0.9' } },
    });

    assert.equal(status, 400);
    assert.match(body.message, /10\.80\.0\.9/);
    await engine.delete(`/containers/${id}?force=1`);
    assert.equal((await engine.delete('/networks/vlan')).status, 204);
  });

  test('archives are never compressed, and have the numbers of their users alone', async () => {
    const id = await engine.create(['true']);

    const answer = await engine.get(`/containers/${id}/archive?path=/bin/busybox`, {
      headers: { 'accept-encoding': 'gzip' },
    });

    assert.equal(answer.headers['content-encoding'], undefined);
    assert.ok(tarList(answer.raw).has('busybox'));
    const [user, group] = [answer.raw.subarray(265, 297), answer.raw.subarray(297, 329)];
    assert.deepEqual([user.every((byte) => byte === 0), group.every((byte) => byte === 0)], [true, true]);
  });

  test('the driver `local` keeps lines that logs give back', async () => {
    const id = await engine.run(['sh', '-c', 'echo out; echo err >&2'], {
      HostConfig: { LogConfig: { Type: 'local', Config: {} } },
    });
    await engine.wait(id);

    assert.deepEqual(await engine.output(id), { stdout: 'out\n', stderr: 'err\n' });
  });

  for (const tag of ['{{define "a"}}x{{end}}', '{{template "a"}}', '{{block "a" .}}x{{end}}']) {
    test(`the tag ${tag} is refused`, async () => {
      const { status, body } = await engine.post<Message>('/containers/create', {
        Image: 'busybox',
        HostConfig: { LogConfig: { Type: 'json-file', Config: { tag } } },
      });

      assert.equal(status, 400);
      assert.notEqual(body.message, '');
    });
  }

  test('a log with max-file=1 is one file', async () => {
    const id = await engine.run(['sh', '-c', 'i=0; while [ $i -lt 3000 ]; do echo line $i; i=$((i+1)); done'], {
      HostConfig: { LogConfig: { Type: 'json-file', Config: { 'max-size': '10k', 'max-file': '1' } } },
    });
    await engine.wait(id);

    const folder = join((await inspect(id)).LogPath, '..');
    assert.deepEqual(
      readdirSync(folder).filter((name) => name.includes('.log')),
      [(await inspect(id)).LogPath.slice(folder.length + 1)],
    );
    assert.match((await engine.output(id)).stdout, /line 2999\n$/);
  });

  test('pieces of a line over 16 KB end between two characters', async () => {
    const id = await engine.run(['sh', '-c', 'i=0; while [ $i -lt 9000 ]; do printf "a€"; i=$((i+1)); done; echo']);
    await engine.wait(id);

    const pieces = readFileSync((await inspect(id)).LogPath, 'utf8')
      .trimEnd()
      .split('\n');
    const texts = pieces.map((piece) => (JSON.parse(piece) as { log: string }).log);
    assert.ok(pieces.length > 1);
    assert.equal(texts.join(''), `${'a€'.repeat(9000)}\n`);
    assert.ok(texts.every((text) => !text.includes('\uFFFD')));
  });

  test('steps that only change settings make no container, and tell the id of one', async () => {
    const since = (await engine.get<{ SystemTime: string }>('/info')).body.SystemTime;
    const archive = new TarWriter().add({ name: 'Dockerfile', content: 'FROM busybox\nENV a=1\nLABEL b=2\n' }).end();

    const { raw } = await engine.post('/build?rm=1', archive, { headers: { 'content-type': 'application/x-tar' } });

    assert.match(raw.toString(), /Successfully built/);
    assert.match(raw.toString(), /Running in [0-9a-f]{12}/);
    const until = (await engine.get<{ SystemTime: string }>('/info')).body.SystemTime;
    const events = await engine.get(`/events?since=${since}&until=${until}&filters={"type":["container"]}`);
    assert.equal(events.raw.toString(), '');
  });

  test('a copy out of a stopped container tells of no mounts of its volumes', async () => {
    const id = await engine.create(['true'], { HostConfig: { Binds: ['copied:/v'] } });
    const since = (await engine.get<{ SystemTime: string }>('/info')).body.SystemTime;

    assert.equal((await engine.get(`/containers/${id}/archive?path=/v`)).status, 200);

    const until = (await engine.get<{ SystemTime: string }>('/info')).body.SystemTime;
    const events = await engine.get(`/events?since=${since}&until=${until}&filters={"type":["volume"]}`);
    assert.equal(events.raw.toString(), '');
  });

  test('a build for another platform than that of its base pulls the base for it', async () => {
    await engine.post('/images/busybox/tag?repo=127.0.0.1:1/base&tag=1');
    const content = 'FROM 127.0.0.1:1/base:1\nENV a=1\n';
    const archive = new TarWriter().add({ name: 'Dockerfile', content }).end();

    const { raw } = await engine.post('/build?platform=linux/s390x', archive, {
      headers: { 'content-type': 'application/x-tar' },
    });

    assert.match(raw.toString(), /"error":"Get \\"https?:\/\/127\.0\.0\.1:1\//);
    assert.doesNotMatch(raw.toString(), /Successfully built/);
  });

  test('one sample of stats is compared with a reading at least 0.4 s before', async () => {
    const id = await engine.run(['sleep', '1000']);

    const { body } = await engine.get<{ read: string; preread: string }>(`/containers/${id}/stats?stream=0`);

    const apart = Temporal.Instant.from(body.preread).until(body.read, { largestUnit: 'milliseconds' });
    assert.ok(apart.milliseconds >= 400, body.preread);
  });

  const booleans: readonly (readonly [text: string, value: boolean])[] = [
    ...(['', '0', 'f', 'false', 'n', 'no', 'none', 'off', 'FALSE', 'Off'] as const).map(
      (text) => [text, false] as const,
    ),
    ...(['1', 't', 'true', 'y', 'yes', 'on', '2', 'banana'] as const).map((text) => [text, true] as const),
  ];
  for (const [text, value] of booleans) {
    test(`the boolean "${text}" of a query is ${value}`, async () => {
      assert.equal((await namesOf(`/containers/json?all=${text}`)).includes('plain-name'), value);
    });
  }

  suite('volumes of a plugin', () => {
    const volumes = new Map([['elsewhere', {}]]);
    let plugin: TestPlugin;
    before(async () => {
      plugin = await TestPlugin.start(join(plugins.path, 'shelf.sock'), ['VolumeDriver'], {
        'VolumeDriver.Create': ({ Name = '' }) => {
          volumes.set(Name, {});
          return { Err: '' };
        },
        'VolumeDriver.Remove': ({ Name = '' }) => {
          volumes.delete(Name);
          return { Err: '' };
        },
        'VolumeDriver.Path': () => ({ Mountpoint: '/nowhere', Err: '' }),
        'VolumeDriver.List': () => ({ Volumes: [...volumes.keys()].map((Name) => ({ Name })), Err: '' }),
      });
      const made = await engine.post('/volumes/create', { Name: 'shelved', Driver: 'shelf' });
      assert.equal(made.status, 201, made.raw.toString());
    });
    after(async () => await plugin[Symbol.asyncDispose]());

    const listed = async (): Promise<string[]> =>
      (await engine.get<{ Volumes: { Name: string }[] }>('/volumes')).body.Volumes.map(({ Name }) => Name);

    test('a plugin without `Get` has the volumes that were created, and none that were made elsewhere', async () => {
      const names = await listed();

      assert.deepEqual([names.includes('shelved'), names.includes('elsewhere')], [true, false]);
      assert.equal((await engine.get('/volumes/shelved')).status, 200);
    });

    test('the removal of a volume is 404 without its plugin', async () => {
      await plugin[Symbol.asyncDispose]();
      rmSync(plugin.socketPath, { force: true });

      const refused = await engine.delete<Message>('/volumes/shelved');

      assert.equal(refused.status, 404);
      assert.match(refused.body.message, /shelf/);
    });
  });
});
