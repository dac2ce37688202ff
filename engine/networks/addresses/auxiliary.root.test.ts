import assert from 'node:assert/strict';
import { test } from 'node:test';

import type { Inspect } from '@gantry/engine/containers/schema.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

import type { NetworkWire } from '../schema.ts';

test('an auxiliary address is given to no container, neither by itself nor on request, also by the next daemon', async () => {
  await using engine = await TestEngine.start();
  const Config = [
    {
      Subnet: '10.81.0.0/28',
      IPRange: '10.81.0.0/29',
      AuxiliaryAddresses: { printer: '10.81.0.2', scanner: '10.81.0.4' },
    },
  ];
  assert.equal((await engine.post('/networks/create', { Name: 'office', IPAM: { Config } })).status, 201);
  const HostConfig = { NetworkMode: 'office' };
  const joins = async (name: string): Promise<string> => {
    await engine.run(['sleep', '1000'], { HostConfig }, name);
    const { body } = await engine.get<Inspect>(`/containers/${name}/json`);
    return body.NetworkSettings.Networks['office']!.IPAddress;
  };

  const first = await joins('first');
  await engine.kill('SIGTERM');
  await engine.startAgain();
  const others = [await joins('second'), await joins('third')];
  const NetworkingConfig = { EndpointsConfig: { office: { IPAMConfig: { IPv4Address: '10.81.0.4' } } } };
  const id = await engine.create(['true'], { HostConfig, NetworkingConfig });
  const { status, body } = await engine.post<{ message: string }>(`/containers/${id}/start`);

  assert.deepEqual([first, ...others], ['10.81.0.3', '10.81.0.5', '10.81.0.6']);
  assert.equal(status, 403);
  assert.match(body.message, /Address already in use/);
  const shown = (await engine.get<NetworkWire>('/networks/office')).body.IPAM.Config[0];
  assert.deepEqual(shown?.AuxiliaryAddresses, { printer: '10.81.0.2', scanner: '10.81.0.4' });
});
