import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';

import { Api } from '@gantry/testing/api.ts';
import { ClusterHosts, type ClusterHost } from '@gantry/testing/cluster/hosts.ts';

import { issue, newAuthority, newKey } from './ca/certificates.ts';

type Member = { nodeId: string; clusterId: string; certificate: string; key: string; root: string };

/** Asks port 2377 from another machine; `status 0` means that no connection came about. */
const ASK = `
const [address, path, body, root, cert, key] = JSON.parse(process.argv[1]);
const { request } = process.getBuiltinModule('node:https');
const options = { method: 'POST', ca: root, servername: 'swarm-manager', ...(cert ? { cert, key } : {}) };
const sent = request('https://' + address + path, options, (answer) => {
  answer.resume();
  console.log(answer.statusCode);
});
sent.on('error', (error) => console.log(0, error.code));
sent.end(JSON.stringify(body));
`;

suite('who is let in', { concurrency: false }, () => {
  let all: ClusterHosts;
  let [manager, worker, stranger]: ClusterHost[] = [];
  let [own, of]: Member[] = [];
  before(async () => {
    all = await ClusterHosts.start(3);
    [manager, worker, stranger] = all.hosts;
    await manager!.init();
    await worker!.join(manager!, 'Worker');
    own = memberOf(manager!);
    of = memberOf(worker!);
  });
  after(async () => await all[Symbol.asyncDispose]());

  async function ask(path: string, certificate?: { certificate: string; key: string }, port = 2377): Promise<number> {
    const words = [
      `${manager!.ip}:${port}`,
      path,
      path === '/v1/write' ? { write: 'x', args: 0 } : {},
      own!.root,
      certificate?.certificate,
      certificate?.key,
    ];
    return Number.parseInt(await stranger!.engine.onHost([process.execPath, '-e', ASK, JSON.stringify(words)]), 10);
  }

  test('a certificate of the cluster opens what its role may do, and no certificate nothing', async () => {
    assert.equal(await ask('/v1/ping', own), 200);
    assert.equal(await ask('/v1/write', own), 500); // there is no such write
    assert.equal(await ask('/v1/ping', of), 403);
    assert.equal(await ask('/v1/write', of), 403);
    for (const path of ['/v1/ping', '/v1/write', '/v1/peers', '/v1/peers/promote', '/v1/leave'])
      assert.equal(await ask(path), 403, path);
    assert.equal(await ask('/v1/none'), 404);
  });

  test('a foreign, an expired, a wrong-role and an unknown certificate open nothing', async () => {
    const now = Temporal.Now.instant();
    const { publicKey, privateKey } = newKey();
    const { ca, id } = await authority();
    const made = (over: object, from = ca, at = now, lifeSeconds = 3600): { certificate: string; key: string } => {
      const subject = { name: own!.nodeId, unit: 'swarm-manager', organization: id, ...over };
      return {
        key: privateKey,
        certificate: issue(from, { subject, publicKey, now: at, lifeSeconds, dnsNames: ['swarm-manager'] }),
      };
    };

    assert.equal(await ask('/v1/ping', made({})), 200);
    assert.equal(await ask('/v1/ping', made({}, newAuthority('swarm-ca', now))), 403);
    assert.equal(await ask('/v1/ping', made({}, ca, now.subtract({ hours: 48 }))), 403);
    assert.equal(await ask('/v1/ping', made({ unit: 'swarm-worker' })), 403);
    assert.equal(await ask('/v1/ping', made({ name: of!.nodeId })), 403);
    assert.equal(await ask('/v1/ping', made({ name: '0'.repeat(25) })), 403);
    assert.equal(await ask('/v1/ping', made({ organization: '0'.repeat(25) })), 403);
  });

  test("a node's certificate opens nothing at etcd's peers", async () => {
    assert.equal(await ask('/version', own, 2378), 0);
    assert.equal(await ask('/version', of, 2378), 0);
  });

  test('keys and sockets are for root alone', async () => {
    const { directory } = manager!.engine;
    const files = ['data/cluster/member.json', 'data/cluster/peers/key.pem', 'exec/etcd/client:0'];
    const folders = ['data/cluster', 'data/cluster/etcd', 'data/cluster/peers', 'exec/etcd'];

    const modes = await manager!.engine.onHost([
      'stat',
      '-c',
      '%a',
      ...[...files, ...folders].map((path) => join(directory, path)),
    ]);

    const others = modes
      .trim()
      .split('\n')
      .filter((mode) => !/^[67]00$/.test(mode));
    assert.deepEqual(others, []);
  });

  /** The root key, as etcd has it: only root on a manager can read it. */
  async function authority(): Promise<{ ca: { certificate: string; key: string }; id: string }> {
    using etcd = new Api(join(manager!.engine.directory, 'exec/etcd/client:0'), '');
    const { body } = await etcd.post<{ kvs: [{ value: string }] }>('/v3/kv/range', { key: btoa('cluster') });
    const [{ value }] = body.kvs;
    return JSON.parse(Buffer.from(value, 'base64').toString()) as {
      ca: { certificate: string; key: string };
      id: string;
    };
  }
});

function memberOf(host: ClusterHost): Member {
  return JSON.parse(readFileSync(join(host.engine.dataRoot, 'cluster/member.json'), 'utf8')) as Member;
}
