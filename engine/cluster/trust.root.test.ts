import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';

import { Api } from '@gantry/testing/api.ts';
import { ClusterHosts, type ClusterHost } from '@gantry/testing/cluster/hosts.ts';
import { Services } from '@gantry/testing/cluster/services.ts';
import { eventually } from '@gantry/testing/eventually.ts';

import { issue, newAuthority, newKey } from './ca/certificates.ts';

type PeerCertificate = Readonly<{ certificate: string; key: string }>;
type Member = { nodeId: string; clusterId: string; certificate: string; key: string; root: string };

/** Asks port 2377 from another machine; `status 0` means that no connection came about. */
const ASK = `
const [address, path, body, root, cert, key] = JSON.parse(process.argv[1]);
const { request } = process.getBuiltinModule('node:https');
const trust = root === '' ? { rejectUnauthorized: false, method: 'GET' } : { ca: root, method: 'POST' };
const options = { ...trust, servername: 'swarm-manager', ...(cert ? { cert, key } : {}) };
const sent = request('https://' + address + path, options, (answer) => {
  answer.resume();
  console.log(answer.statusCode);
});
sent.on('error', (error) => console.log(0, error.code));
sent.end(JSON.stringify(body));
`;

/** A session of a node: prints what the leader says until it has named all tasks. */
const LISTEN = `
const [address, root, cert, key, ip] = JSON.parse(process.argv[1]);
const { request } = process.getBuiltinModule('node:https');
const headers = { Connection: 'Upgrade', Upgrade: 'gantry-session', 'Content-Length': '0' };
const options = { method: 'POST', ca: root, cert, key, servername: 'swarm-manager', headers, agent: false };
const sent = request('https://' + address + '/v1/session', options);
const platform = { architecture: 'x86_64', os: 'linux' };
const engine = { version: '1', labels: {}, plugins: [] };
const description = { hostname: 'host2', platform, resources: { nanoCpus: 1e9, memoryBytes: 1e9 }, engine };
sent.on('upgrade', (answer, socket) => {
  let heard = '';
  socket.write(JSON.stringify({ say: 'hello', description, address: ip }) + '\\n');
  socket.on('data', (piece) => {
    heard += piece;
    process.stdout.write(piece);
    if (heard.includes('"allTasks"')) socket.destroy();
  });
});
sent.on('response', (answer) => { console.log('refused', answer.statusCode); process.exit(); });
sent.on('error', (error) => console.log(error.code));
sent.end();
`;

suite('access to managers', { concurrency: false }, () => {
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

  /** Asks etcd's port for peers, whose server is not checked here. */
  async function askEtcd({ certificate, key }: PeerCertificate): Promise<number> {
    const words = [`${manager!.ip}:2378`, '/version', {}, '', certificate, key];
    return Number.parseInt(await stranger!.engine.onHost([process.execPath, '-e', ASK, JSON.stringify(words)]), 10);
  }

  test('a certificate of the cluster opens the routes of its role, and no certificate nothing', async () => {
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

  test('a foreign, an expired and a revoked certificate of a peer open nothing at etcd', async () => {
    const now = Temporal.Now.instant();
    const { peerCa } = await authority();
    const { publicKey, privateKey } = newKey();
    const made = (from = peerCa, at = now): PeerCertificate => {
      const wanted = {
        subject: { name: own!.nodeId },
        publicKey,
        now: at,
        lifeSeconds: 3600,
        addresses: [stranger!.ip],
      };
      return { key: privateKey, certificate: issue(from, wanted) };
    };
    assert.equal(await askEtcd(made()), 200);
    assert.equal(await askEtcd(made(newAuthority('swarm-peers', now))), 0);
    assert.equal(await askEtcd(made(peerCa, now.subtract({ hours: 48 }))), 0);

    await manager!.updateNode('host2', { Role: 'manager' });
    await eventually('host2 manages', async () => ((await worker!.nodes()).length === 2 ? true : undefined));
    const peers = join(worker!.engine.dataRoot, 'cluster/peers');
    const [certificate, key] = ['certificate.pem', 'key.pem'].map((name) => readFileSync(join(peers, name), 'utf8'));
    const former = memberOf(worker!);
    assert.equal(await askEtcd({ certificate: certificate!, key: key! }), 200);
    assert.equal(await ask('/v1/ping', former), 200);

    await manager!.updateNode('host2', { Role: 'worker' });
    await manager!.node('host2', (node) => node.ManagerStatus === undefined && node.Status.State === 'ready');
    assert.equal(await askEtcd({ certificate: certificate!, key: key! }), 0);
    assert.equal(await ask('/v1/ping', former), 403);
  });

  test("a worker hears nothing of tasks of other nodes, nor of a registry's credentials for them", async () => {
    const auth = Buffer.from(JSON.stringify({ username: 'user', password: 'password-of-it' })).toString('base64url');
    const create = async (name: string, hostname: string): Promise<void> => {
      const TaskTemplate = {
        ContainerSpec: { Image: `registry.invalid/${name}` },
        RestartPolicy: { Condition: 'none' },
        Placement: { Constraints: [`node.hostname==${hostname}`] },
      };
      const headers = { 'X-Registry-Auth': auth };
      const answer = await manager!.engine.post('/services/create', { Name: name, TaskTemplate }, { headers });
      assert.equal(answer.status, 201, answer.raw.toString());
    };
    await create('elsewhere', 'host1');
    await create('here', 'host2');
    const services = new Services(manager!);
    for (const name of ['elsewhere', 'here']) await services.inState(name, 'rejected');

    const address = `${manager!.ip}:2377`;
    const { certificate, key } = memberOf(worker!);
    const words = [address, own!.root, certificate, key, worker!.ip];
    // Or the worker, whose session this one replaces, begins another that replaces it.
    await worker!.engine.kill('SIGTERM');
    const heard = await stranger!.engine.onHost([process.execPath, '-e', LISTEN, JSON.stringify(words)]);
    await worker!.engine.startAgain();

    assert.match(heard, /"say":"welcome"/);
    assert.match(heard, /registry\.invalid\/here/);
    assert.match(heard, /"say":"allTasks"/);
    assert.doesNotMatch(heard, /elsewhere/);
    for (const name of ['elsewhere', 'here']) await services.remove(name);
  });

  test('a removed node is let in nowhere, also with a certificate that is valid', async () => {
    const former = memberOf(worker!);
    const { ID } = await manager!.node('host2');

    assert.equal((await manager!.engine.delete(`/nodes/${ID}?force=1`)).status, 200);

    const { certificate, key } = former;
    const words = [`${manager!.ip}:2377`, own!.root, certificate, key, worker!.ip];
    assert.match(
      await stranger!.engine.onHost([process.execPath, '-e', LISTEN, JSON.stringify(words)]),
      /^refused 403/,
    );
    assert.equal(await ask('/v1/leave', former), 403);
    assert.equal((await worker!.engine.post('/swarm/leave?force=1')).status, 200);
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
  async function authority(): Promise<{ ca: PeerCertificate; peerCa: PeerCertificate; id: string }> {
    using etcd = new Api(join(manager!.engine.directory, 'exec/etcd/client:0'), '');
    const { body } = await etcd.post<{ kvs: [{ value: string }] }>('/v3/kv/range', { key: btoa('cluster') });
    const [{ value }] = body.kvs;
    return JSON.parse(Buffer.from(value, 'base64').toString()) as Awaited<ReturnType<typeof authority>>;
  }
});

function memberOf(host: ClusterHost): Member {
  return JSON.parse(readFileSync(join(host.engine.dataRoot, 'cluster/member.json'), 'utf8')) as Member;
}
