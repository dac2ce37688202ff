import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';

import type { Inspect } from '@gantry/engine/containers/schema.ts';
import type { NetworkWire } from '@gantry/engine/networks/schema.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

suite('the network that a container is in', { concurrency: false }, () => {
  let engine: TestEngine;
  before(async () => void (engine = await TestEngine.start()));
  after(async () => await engine[Symbol.asyncDispose]());

  async function said(script: string, HostConfig: object): Promise<string> {
    const id = await engine.run(['sh', '-c', script], { HostConfig });
    await engine.wait(id);
    return (await engine.output(id)).stdout.trim();
  }

  async function inspect(ref: string): Promise<Inspect> {
    return (await engine.get<Inspect>(`/containers/${ref}/json`)).body;
  }

  test("in another container's network it has that one's name, files and address", async () => {
    const owner = await engine.run(['sleep', '1000'], { Hostname: 'origin', Domainname: 'example.org' }, 'owner');
    const script = 'hostname; hostname -i; cat /etc/hostname; echo $HOSTNAME; cat /proc/sys/kernel/domainname';
    const HostConfig = { NetworkMode: 'container:owner' };

    const lines = (await said(script, HostConfig)).split('\n');
    const inner = await engine.run(['sleep', '1000'], { HostConfig: { NetworkMode: 'container:owner' } }, 'inner');
    const innermost = await engine.run(['sleep', '1000'], { HostConfig: { NetworkMode: 'container:inner' } });

    const { NetworkSettings, HostsPath } = await inspect(owner);
    assert.deepEqual(lines, ['origin', NetworkSettings.IPAddress, 'origin', 'origin', 'example.org']);
    for (const id of [inner, innermost]) {
      const shown = await inspect(id);
      assert.deepEqual([shown.Config.Hostname, shown.HostsPath], ['origin', HostsPath]);
    }
  });

  test("a hostname that is changed inside stays inside: the other container's is its own", async () => {
    await engine.run(['sleep', '1000'], { Hostname: 'first' }, 'first');
    await said('hostname other', { NetworkMode: 'container:first', CapAdd: ['SYS_ADMIN'] });

    assert.equal(await said('hostname', { NetworkMode: 'container:first' }), 'first');
  });

  test('containers that lead to each other are refused at the start', async () => {
    const one = await engine.create(['true'], { HostConfig: { NetworkMode: 'container:two' } }, 'one');
    await engine.create(['true'], { HostConfig: { NetworkMode: 'container:one' } }, 'two');

    const answer = await engine.post<{ message: string }>(`/containers/${one}/start`);

    assert.deepEqual([answer.status, answer.body.message], [500, 'cannot join own network']);
    assert.equal((await inspect(one)).Name, '/one');
  });

  for (const name of ['none', 'host', 'bridge']) {
    test(`the network ${name} is the same by its id and by the beginning of it`, async () => {
      const { Id } = (await engine.get<NetworkWire>(`/networks/${name}`)).body;
      const list = 'ls /sys/class/net | grep -v ^veth'; // those of the machine come and go
      const links = await said(list, { NetworkMode: name });

      for (const NetworkMode of [Id, Id.slice(0, 12)]) {
        const id = await engine.run(['sleep', '1000'], { HostConfig: { NetworkMode } });

        assert.equal(await said(list, { NetworkMode }), links);
        const { HostConfig, NetworkSettings } = await inspect(id);
        assert.equal(HostConfig.NetworkMode, name);
        assert.deepEqual(Object.keys(NetworkSettings.Networks), [name]);
        assert.equal(NetworkSettings.Networks[name]?.NetworkID, Id);
      }
    });
  }
});
