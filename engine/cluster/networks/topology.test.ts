import assert from 'node:assert/strict';
import { beforeEach, suite, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';

import { systemClock } from '../../lib/clock.ts';
import { Draft } from '../state/draft.ts';
import type { NodeRecord, TaskRecord } from '../state/records.ts';
import { Replica } from '../state/replica.ts';
import { createNetwork } from './create.ts';
import { seedIngress } from './ingress.ts';
import { NetworkPush, type NetworkMessage } from './push.ts';
import { removeNetwork } from './remove.ts';

const NOW = Temporal.Instant.from('2026-01-01T00:00:00Z');
const DATED = { createdAt: NOW.toString(), updatedAt: NOW.toString() };
const NEW = { name: 'front', labels: {}, options: {}, internal: false, ranges: [] };

suite('the networks of a cluster and their members', () => {
  let replica: Replica;
  let revision: number;
  beforeEach(() => {
    replica = new Replica({ now: () => NOW, after: () => ({ [Symbol.dispose]: () => undefined }) });
    revision = 0;
    change((draft) => seedIngress(draft, NOW));
  });

  function change<T>(work: (draft: Draft) => T): T {
    const draft = new Draft(replica);
    const result = work(draft);
    revision += 1;
    replica.apply({ revision, changes: [...draft.changes] });
    return result;
  }

  function node(id: string, over: Partial<NodeRecord> = {}): void {
    const spec = { name: '', labels: {}, role: 'worker' as const, availability: 'active' as const };
    const status = { state: 'ready' as const, message: '', address: `10.9.0.${id.slice(1)}` };
    change((draft) => draft.put('node', { ...DATED, id, spec, role: 'worker', status, ...over }));
  }

  function service(network: string, ports: { publishedPort: number; targetPort: number }[] = []): void {
    const ingress = [...replica.all('network')].find((one) => one.ingress)!.id;
    const template = { container: { image: 'busybox' } };
    change((draft) =>
      draft.put('service', {
        ...DATED,
        id: 'web',
        spec: {
          name: 'web',
          labels: {},
          template,
          mode: { kind: 'replicated', replicas: 1 },
          networks: [{ target: network, aliases: ['www'] }],
        },
        template: 'hash',
        endpoint: {
          ports: ports.map((port) => ({ protocol: 'tcp', ...port })),
          virtualIps: [
            { network, address: '10.0.0.2/24' },
            ...(ports.length > 0 ? [{ network: ingress, address: '10.255.0.9/16' }] : []),
          ],
        },
      }),
    );
  }

  function task(id: string, at: string, network: string, over: Partial<TaskRecord> = {}): void {
    const status = { state: 'running' as const, timestamp: NOW.toString(), message: '' };
    const addresses = [{ network, address: `10.0.0.${10 + Number(id)}/24` }];
    const record = { ...DATED, id, service: 'web', slot: Number(id), node: at, template: 'hash', status, addresses };
    change((draft) => draft.put('task', { ...record, desired: 'running', ...over }));
  }

  function heard(push: NetworkPush, id: string): NetworkMessage[] {
    const messages: NetworkMessage[] = [];
    push.begin(id, (message) => messages.push(message));
    return messages;
  }

  test('networks get free numbers and ranges, or those of the request; names are those of DNS', () => {
    node('n1', { status: { state: 'ready', message: '', address: '10.0.1.7' } });
    const create = (over: object): string => change((draft) => createNetwork(draft, { ...NEW, ...over }, NOW)).id;
    const ranges = [{ subnet: '10.0.3.128/25', gateway: '10.0.3.130' }];
    const made = [{}, { name: 'b' }, { name: 'c', ranges }, { name: 'd' }].map(create);

    assert.deepEqual(
      made.map((id) => {
        const { vni, subnets } = replica.get('network', id)!;
        return [vni, subnets[0]!.subnet, subnets[0]!.gateway];
      }),
      [
        [4097, '10.0.0.0/24', '10.0.0.1'],
        [4098, '10.0.2.0/24', '10.0.2.1'], // the node is in 10.0.1.0/24
        [4099, '10.0.3.128/25', '10.0.3.130'],
        [4100, '10.0.4.0/24', '10.0.4.1'],
      ],
    );
    for (const [over, kind] of [
      [{ name: 'front' }, 'conflict'],
      [{ name: 'not good!' }, 'invalid'],
      [{ name: 'a', ranges: [{ subnet: 'bad' }] }, 'invalid'],
      [{ name: 'a', ranges: [{ subnet: '10.255.1.0/24' }] }, 'forbidden'],
      [{ name: 'a', ranges: [{ subnet: 'fd00::/64' }] }, 'invalid'],
      [{ name: 'a', options: { encrypted: '' } }, 'notImplemented'],
      [{ name: 'a', options: { 'com.docker.network.driver.overlay.vxlanid_list': '4097' } }, 'invalid'],
      [{ nonsense: true, name: 3 }, 'invalid'],
    ] as const) {
      assert.throws(() => create(over), { kind });
    }
  });

  test('a network in use, and the one of published ports, are not removed', () => {
    const { id } = change((draft) => createNetwork(draft, NEW, NOW));
    const ingress = [...replica.all('network')].find((one) => one.ingress)!.id;
    service(id);

    const remove = (which: string) => (): void => change((draft) => removeNetwork(draft, { id: which }));
    assert.throws(remove(id), { kind: 'invalid', message: /is in use by service web$/ });
    change((draft) => {
      const web = draft.get('service', 'web')!;
      const endpoint = {
        mode: 'vip' as const,
        ports: [{ protocol: 'tcp' as const, targetPort: 80, publishedPort: 0 }],
      };
      draft.put('service', { ...web, id: 'shown', spec: { ...web.spec, networks: [], endpoint } });
    });
    assert.throws(remove(ingress), { kind: 'invalid', message: /because service shown depends on it$/ });
    assert.throws(remove('nosuch'), { kind: 'notFound' });
    change((draft) => draft.delete('service', 'web'));
    remove(id)();
    assert.equal(replica.get('network', id), undefined);
  });

  test('a node hears of a network with its first task there, of each change, and of the end', () => {
    for (const id of ['n1', 'n2']) node(id);
    const { id } = change((draft) => createNetwork(draft, NEW, NOW));
    service(id);
    task('1', 'n1', id);
    using push = new NetworkPush({ replica, clock: systemClock });
    const one = heard(push, 'n1');
    const two = heard(push, 'n2');
    assert.deepEqual(two.splice(0), [{ say: 'networks', ids: [] }]);
    const [ids, whole] = one.splice(0);
    assert.deepEqual(ids, { say: 'networks', ids: [id] });
    assert.ok(whole?.say === 'network');
    assert.equal(whole.news.whole?.local, '10.9.0.1');
    assert.deepEqual(whole.news.members, [
      { kind: 'service', id: 'web', name: 'web', aliases: ['www'], vip: '10.0.0.2', ports: [] },
      { kind: 'task', id: '1', service: 'web', name: 'web.1.1', ip: '10.0.0.11', host: '10.9.0.1', serves: true },
    ]);

    task('2', 'n2', id, { status: { state: 'preparing', timestamp: '', message: '' } });
    const member = { kind: 'task', id: '2', service: 'web', name: 'web.2.2', ip: '10.0.0.12', host: '10.9.0.2' };
    assert.deepEqual(one.splice(0), [
      { say: 'network', news: { id, members: [{ ...member, serves: false }], gone: [] } },
    ]);
    assert.equal(two.splice(0).length, 1);
    task('2', 'n2', id, { desired: 'shutdown' });
    assert.deepEqual(one.splice(0), [], 'nothing that it would do otherwise');
    task('2', 'n2', id);
    assert.deepEqual(one.splice(0), [
      { say: 'network', news: { id, members: [{ ...member, serves: true }], gone: [] } },
    ]);
    two.splice(0);

    task('2', 'n2', id, { status: { state: 'shutdown', timestamp: '', message: '' }, addresses: [] });
    assert.deepEqual(one.splice(0), [{ say: 'network', news: { id, members: [], gone: ['2'] } }]);
    assert.deepEqual(two.splice(0), [{ say: 'networks', ids: [] }]);
  });

  test('published ports are everywhere, for as long as a service publishes any', () => {
    const ingress = [...replica.all('network')].find((one) => one.ingress)!.id;
    node('n1', { ingress: '10.255.0.2/16' });
    node('n2', { ingress: '10.255.0.3/16' });
    const { id } = change((draft) => createNetwork(draft, NEW, NOW));
    using push = new NetworkPush({ replica, clock: systemClock });
    const two = heard(push, 'n2');
    two.splice(0);

    service(id, [{ publishedPort: 8080, targetPort: 80 }]);
    const [message] = two.splice(0);
    assert.ok(message?.say === 'network');
    assert.equal(message.news.id, ingress);
    assert.deepEqual(message.news.members.map((member) => member.kind).toSorted(), ['node', 'node', 'service']);
    change((draft) => draft.delete('service', 'web'));

    assert.deepEqual(two.splice(0), [{ say: 'networks', ids: [] }]);
  });

  test('a withdrawal of a task waits for the nodes in its networks that have a session, each of which is asked once at a time', async () => {
    for (const id of ['n1', 'n2', 'n3']) node(id);
    const { id } = change((draft) => createNetwork(draft, NEW, NOW));
    service(id);
    task('1', 'n1', id);
    task('2', 'n2', id);
    task('3', 'n4', id); // a node without a session
    using push = new NetworkPush({ replica, clock: systemClock });
    const [two, three] = [heard(push, 'n2'), heard(push, 'n3')];
    const one: NetworkMessage[] = [];
    push.begin('n1', (message) => one.push(message), false); // of an earlier version
    for (const messages of [one, two, three]) messages.length = 0;
    let ends = 0;
    const ask = async (): Promise<void> => {
      await push.heard(id);
      ends += 1;
    };

    const asked = [ask(), ask(), ask()];
    while (two.length === 0) await setImmediate();
    assert.deepEqual(two.splice(0), [{ say: 'sync', number: 1 }]);
    push.synced('n2', 7);
    await setImmediate();
    assert.deepEqual([two.splice(0), ends], [[], 0]);
    push.synced('n2', 1);
    await asked[0];
    assert.equal(ends, 1);
    while (two.length === 0) await setImmediate();
    assert.deepEqual(two.splice(0), [{ say: 'sync', number: 2 }]);
    push.synced('n2', 1);
    asked.push(ask());
    push.end('n2');
    await Promise.all(asked);
    await push.heard('nosuch');
    assert.deepEqual([one, two, three, ends], [[], [], [], 4]);
  });
});
