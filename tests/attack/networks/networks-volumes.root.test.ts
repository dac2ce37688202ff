import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';

import { TestEngine } from '@gantry/testing/test-engine.ts';

const LONG = 'x'.repeat(100_000);
const MANY = Object.fromEntries(Array.from({ length: 5000 }, (_, index) => [`key-${index}`, `value ${index}`]));
const subnet = (Subnet: string, more: object = {}): object => ({ IPAM: { Config: [{ Subnet, ...more }] } });
const options = (key: string, ...values: string[]): object[] =>
  values.map((value) => ({ Options: { [`com.docker.network.${key}`]: value } }));

/** Texts that must not get out of their place: into packet rules, links of the machine, files, or the daemon's memory. */
const HOSTILE: readonly object[] = [
  ...['a"; flush ruleset', 'a\nb', 'a\0b', '../../etc', '{{.ID}}', '-rm', '$(reboot)', LONG].map((Name) => ({ Name })),
  ...options('bridge.name', '"; flush ruleset; #', 'x } flush ruleset', '../x', 'a/b', '.', '..', '-x', 'a b', 'a\nb'),
  ...options('bridge.name', 'lo', 'uplink', 'gantry0', 'abcdefghijklmnop', 'größe', '%d', 'veth%d', LONG),
  ...options('driver.mtu', '-1', '0', '67', '65536', '1e9', '99999999999999999999', 'x', '1500; x', LONG),
  ...options('bridge.host_binding_ipv4', '0.0.0.0; x', '::', '999.1.1.1', '127.0.0.1"', 'localhost', LONG),
  ...options('bridge.enable_icc', 'maybe', '"', LONG),
  ...options('bridge.enable_ip_masquerade', 'maybe', '0 or 1'),
  { Labels: MANY },
  { Labels: { '': '', '"': '\n', __proto__: 'x', constructor: 'y', toString: 'z' } },
  { Options: MANY },
  ...['0.0.0.0/0', '0.0.0.0/1', '127.0.0.0/8', '127.0.0.1/32', '224.0.0.0/4', '255.255.255.255/32', '10.0.0.0/-1'].map(
    (one) => subnet(one),
  ),
  ...['10.0.0.0/1e1', '10.0.0.0/08', '010.0.0.0/8', '10.0.0/8', '10.0.0.0/24; x', '10.0.0.0/24 }', '::/0', LONG].map(
    (one) => subnet(one),
  ),
  ...['fd00::/128', '::1/128', 'ff00::/8', 'fe80::/64', '::ffff:10.0.0.0/104', 'fd00::/64; x', '2000::/3'].map(
    (one) => ({
      EnableIPv6: true,
      ...subnet(one),
    }),
  ),
  subnet('10.81.0.0/24', { Gateway: '10.81.0.1"; x' }),
  subnet('10.82.0.0/24', { Gateway: '0.0.0.0' }),
  subnet('10.83.0.0/24', { AuxiliaryAddresses: { a: '10.83.0.1', b: '10.83.0.1', c: '255.255.255.255', d: '"' } }),
  subnet('10.84.0.0/16', {
    AuxiliaryAddresses: Object.fromEntries(
      Array.from({ length: 5000 }, (_, index) => [`a${index}`, `10.84.${index >> 8}.${index & 255}`]),
    ),
  }),
  {
    IPAM: { Config: Array.from({ length: 2000 }, (_, index) => ({ Subnet: `10.85.${index >> 8}.${index & 255}/32` })) },
  },
  { IPAM: { Driver: '../../x', Options: MANY } },
  { Driver: '../../run/x' },
  { Driver: 'macvlan', Options: { parent: '../x' } },
  { Driver: 'macvlan', Options: { parent: 'lo' } },
  { Driver: 'macvlan', Options: { parent: 'uplink.99999' } },
  { Driver: 'macvlan', Options: { parent: 'uplink.5"; x', macvlan_mode: 'bridge"' } },
  { Driver: 'ipvlan', Options: { parent: '../x' } },
  { Driver: 'ipvlan', Options: { parent: 'lo', ipvlan_mode: 'l3"' } },
];

suite('hostile networks and volumes', { concurrency: false }, () => {
  let engine: TestEngine;
  before(async () => {
    engine = await TestEngine.start();
    const script =
      'ip link add uplink type veth peer name cable; ip addr add 192.0.2.1/24 dev uplink; ip link set uplink up';
    await engine.onHost(['sh', '-c', script]);
    // The rules of IPv6 come with the first network that has it, and stay.
    await engine.post('/networks/create', { Name: 'six', EnableIPv6: true, ...subnet('fd00:6::/64') });
  });
  after(async () => await engine[Symbol.asyncDispose]());

  /** The machine's own links, routes and tables, without those of networks. */
  async function machine(): Promise<string> {
    const script =
      "ip -o link show uplink | cut -d' ' -f2-; ip -o addr show lo; ip -o addr show uplink; ip route show dev uplink; nft list tables; ip -o link | cut -d: -f2 | grep -v veth; ls /";
    return await engine.onHost(['sh', '-c', script]);
  }

  test('a hostile request changes nothing but its network, and never fails the daemon', async () => {
    const before = await machine();
    const failures: string[] = [];
    for (const [index, body] of HOSTILE.entries()) {
      const said = JSON.stringify(body).slice(0, 100);
      const answer = await engine.post<{ Id?: string; message?: string }>('/networks/create', {
        Name: `attack-${index}`,
        ...body,
      });
      if (answer.status === 201) {
        if (answer.body.Id === undefined) failures.push(`${said}: no id`);
        else {
          const { status } = await engine.get(`/networks/${answer.body.Id}`);
          const removed = await engine.delete(`/networks/${answer.body.Id}`);
          if (status !== 200 || removed.status !== 204) failures.push(`${said}: ${status} ${removed.status}`);
        }
      } else if (answer.status >= 500 && /RTM_|\bE[A-Z]{4,}\b|undefined|Error/.test(answer.body.message ?? '')) {
        failures.push(`${said}: ${answer.status} ${answer.body.message}`);
      }
    }

    assert.deepEqual(failures, []);
    assert.doesNotMatch(engine.log, /"level":(50|60)/);
    const until = Date.now() + 60_000;
    while ((await machine()) !== before && Date.now() < until) await setTimeout(20);
    assert.equal(await machine(), before);
    assert.equal(await engine.wait(await engine.run(['true'])), 0);
  });

  test('volumes and their options lead nowhere but where they say, or are refused', async () => {
    const made = async (body: object): Promise<number> => (await engine.post('/volumes/create', body)).status;
    const driverOpts = (type: string, device: string, o: string): object => ({ DriverOpts: { type, device, o } });

    for (const Name of ['../x', 'a/b', '.', '..', '-x', 'a b', 'a\nb', 'a\0b', LONG]) {
      assert.ok((await made({ Name })) >= 400, JSON.stringify(Name).slice(0, 40));
    }
    for (const size of ['1g', '-1', '1e3', 'x', '1 g; x']) {
      assert.ok((await made({ Name: 'sized', DriverOpts: { size } })) >= 400, size);
    }
    for (const [index, more] of [
      driverOpts('none', '/nosuch/../../nosuch', 'bind'),
      driverOpts('none', 'relative/path', 'bind'),
      driverOpts('nosuchfs', '/dev/null', 'x=y,"'),
      driverOpts('tmpfs', 'tmpfs', 'size=-1'),
      driverOpts('tmpfs', 'tmpfs', `mode=0700,${LONG}`),
      driverOpts('nfs', ':/x', 'addr=no such host'),
      driverOpts('overlay', 'overlay', 'lowerdir=/,upperdir=/nosuch,workdir=/nosuch'),
    ].entries()) {
      const Name = `hostile-${index}`;
      const status = await made({ Name, ...more });
      if (status !== 201) continue;
      const id = await engine.create(['true'], { HostConfig: { Binds: [`${Name}:/v`] } });
      const start = await engine.post<{ message: string }>(`/containers/${id}/start`);
      assert.equal(start.status >= 400, true, `${JSON.stringify(more).slice(0, 100)}: ${start.status}`);
      assert.notEqual(start.body.message, '');
      assert.equal((await engine.delete(`/containers/${id}`)).status, 204);
      assert.equal((await engine.delete(`/volumes/${Name}`)).status, 204);
    }
    assert.equal(await engine.wait(await engine.run(['true'])), 0);
  });
});
