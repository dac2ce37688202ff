import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';

import type { NetworkWire } from '@gantry/engine/networks/schema.ts';
import type { Api } from '@gantry/testing/api.ts';
import { Dockerd } from '@gantry/testing/dockerd.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

import { networkBodies } from './network-bodies.ts';

type Said = { status: number; message: string; shown: Partial<NetworkWire> };

/** Requests that only one of both refuses. */
const DIFFERENCES: Readonly<Record<string, string>> = {
  'no name': 'dockerd looks for a network without a name first',
  'a range outside': 'dockerd takes it, and gives addresses that lead nowhere',
  'a range of IPv6 outside': 'dockerd takes it, and gives addresses that lead nowhere',
  'a range larger than the subnet': 'dockerd takes it, and gives addresses that lead nowhere',
  'addresses of IPv4 that are mapped into IPv6': 'dockerd takes them for a range of IPv4 that overlaps its own',
  'some addresses of IPv4 that are mapped into IPv6': 'dockerd takes them for a range of IPv4 that overlaps its own',
  'an auxiliary address that is the gateway': 'refused with the name of the gateway in dockerd’s words for the other',
};

suite('bodies of POST /networks/create, beside dockerd', { concurrency: false }, () => {
  let ours: TestEngine;
  let theirs: Dockerd;
  before(async () => {
    [ours, theirs] = await Promise.all([
      TestEngine.start({ image: false, flags: ['--bip=172.17.0.1/16'] }),
      Dockerd.start(['--bip=172.17.0.1/16']),
    ]);
  });
  after(async () => await Promise.all([ours[Symbol.asyncDispose](), theirs[Symbol.asyncDispose]()]));

  for (const [position, [about, body]] of Object.entries(networkBodies).entries()) {
    test(about, async () => {
      const request = { Name: `n${position}`, CheckDuplicate: true, ...body };

      const [mine, other] = await Promise.all([ask(ours, request), ask(theirs.api, request)]);

      if (about in DIFFERENCES) {
        assert.notDeepEqual(mine, other);
        return;
      }
      assert.deepEqual(mine, { ...other, status: other.status === 500 ? 400 : other.status });
    });
  }
});

/** Creates a network, inspects it, and removes it. */
async function ask(api: Api, request: object): Promise<Said> {
  const { status, body } = await api.post<{ Id: string; message: string }>('/networks/create', request);
  if (status !== 201) return { status, message: body.message, shown: {} };
  const { Id: _id, Created: _created, ...shown } = (await api.get<NetworkWire>(`/networks/${body.Id}`)).body;
  await api.delete(`/networks/${body.Id}`);
  return { status, message: '', shown: { ...shown, IPAM: { ...shown.IPAM, Config: shown.IPAM.Config.map(unchosen) } } };
}

/** Which subnet of the pools is the next is nobody's business. */
function unchosen(config: NetworkWire['IPAM']['Config'][number]): NetworkWire['IPAM']['Config'][number] {
  const isChosen = /^(172|192\.168)\./.test(config.Subnet ?? '');
  return isChosen ? { Subnet: 'chosen', Gateway: 'chosen' } : config;
}
