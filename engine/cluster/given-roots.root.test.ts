import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';

import { Cfssl } from '@gantry/testing/cluster/cfssl.ts';
import { ClusterHosts, type ClusterHost } from '@gantry/testing/cluster/hosts.ts';
import { eventually } from '@gantry/testing/eventually.ts';

import { newAuthority } from './ca/certificates.ts';

type Swarm = Awaited<ReturnType<ClusterHost['swarm']>> & {
  RootRotationInProgress: boolean;
  TLSInfo: { TrustRoot: string };
  Spec: { CAConfig: Record<string, unknown> };
};

const ADDRESS = { ListenAddr: '10.77.0.1:2377', AdvertiseAddr: '10.77.0.1:2377' };
/** Usages of cfssl's default profile, and its profile for authorities, which dockerd asks for too. */
const SIGNING = {
  default: { usages: ['signing', 'key encipherment', 'server auth', 'client auth'], expiry: '720h' },
  profiles: { CA: { usages: ['cert sign', 'crl sign'], expiry: '8760h', ca_constraint: { is_ca: true } } },
};

suite('a root that a client gives', { concurrency: false }, () => {
  const parts = new AsyncDisposableStack();
  let hosts: readonly ClusterHost[];
  let first: ClusterHost;
  let cfssl: Cfssl;
  before(async () => {
    ({ hosts } = parts.use(await ClusterHosts.start(3)));
    first = hosts[0]!;
    cfssl = parts.use(new Cfssl(first));
  });
  after(async () => await parts.disposeAsync());

  const swarm = async (): Promise<Swarm> => (await first.swarm()) as Swarm;
  const initAnswer = async (CAConfig: object): Promise<[status: number, message: string]> => {
    const answer = await first.engine.post<{ message: string }>('/swarm/init', { ...ADDRESS, Spec: { CAConfig } });
    return [answer.status, answer.body.message];
  };
  async function update(change: object): Promise<[status: number, message: string]> {
    return await eventually('an update of the present version', async () => {
      const { Version, Spec } = await swarm();
      const next = { ...Spec, CAConfig: { ...Spec.CAConfig, ...change } };
      const { status, body } = await first.engine.post<{ message: string }>(
        `/swarm/update?version=${Version.Index}`,
        next,
      );
      return body?.message?.includes('out of sequence') ? undefined : [status, body?.message ?? ''];
    });
  }
  /** Waits until all members have a certificate by this root and trust it alone. */
  async function settled(root: string): Promise<void> {
    await eventually('the end of the rotation', async () =>
      (await swarm()).RootRotationInProgress ? undefined : true,
    );
    for (const { engine, name } of hosts) {
      await eventually(`the root on ${name}`, async () => {
        const text = readFileSync(join(engine.dataRoot, 'cluster/member.json'), 'utf8');
        const { certificate, root: trusted } = JSON.parse(text) as { certificate: string; root: string };
        const isNew = new X509Certificate(certificate).verify(new X509Certificate(root).publicKey);
        return (isNew && trusted.trim() === root.trim()) || (await Promise.resolve(undefined));
      });
    }
  }

  test('POST /swarm/init: SigningCACert and SigningCAKey are the root', async () => {
    const now = Temporal.Now.instant();
    const [root, other] = [newAuthority('mine', now), newAuthority('other', now)];
    const wrong = { SigningCACert: root.certificate, SigningCAKey: other.key };
    for (const config of [{ SigningCAKey: root.key }, { SigningCACert: root.certificate }, wrong]) {
      assert.equal((await initAnswer(config))[0], 400);
    }
    assert.equal((await first.info()).LocalNodeState, 'inactive');

    const [status, message] = await initAnswer({ SigningCACert: root.certificate, SigningCAKey: root.key });
    assert.equal(status, 200, message);

    const { TLSInfo, Spec, RootRotationInProgress } = await swarm();
    assert.deepEqual([TLSInfo.TrustRoot, RootRotationInProgress], [root.certificate, false]);
    assert.doesNotMatch(JSON.stringify(Spec), /CERTIFICATE|PRIVATE/);
    await hosts[1]!.join(first, 'Worker');
    assert.equal((await first.node('host2', ({ Status }) => Status.State === 'ready')).Status.State, 'ready');
    await hosts[1]!.engine.post('/swarm/leave?force=1');
    await first.engine.post('/swarm/leave?force=1');
  });

  test('a root of an external authority cannot follow another one, nor without the profile of authorities', async () => {
    await cfssl.start();
    cfssl.layRoot();
    const [status, message] = await initAnswer({ ExternalCAs: [{ Protocol: 'cfssl', URL: cfssl.url }] });
    assert.equal(status, 200, message);
    await hosts[1]!.join(first, 'Manager');
    await hosts[2]!.join(first, 'Worker');
    const { certificate } = newAuthority('elsewhere', Temporal.Now.instant());

    const [foreign, said] = await update({ SigningCACert: certificate, ForceRotate: 1 });
    const [without, reason] = await update({ ForceRotate: 1 });

    assert.deepEqual([foreign, without], [400, 500], reason);
    assert.match(said, /rotating from one external CA to a different external CA is not supported/);
    assert.match(reason, /no external certificate authority signs/);
    assert.equal((await swarm()).RootRotationInProgress, false);
  });

  test('with the profile, roots of the cluster and of a client follow; then the managers sign alone', async () => {
    writeFileSync(join(cfssl.folder, 'config.json'), JSON.stringify({ signing: SIGNING }));
    await cfssl.stop();
    await cfssl.start('-config config.json');
    const before = (await swarm()).TLSInfo.TrustRoot;

    assert.deepEqual(await update({ ForceRotate: 1 }), [200, '']);

    await eventually('the end of the rotation', async () =>
      (await swarm()).RootRotationInProgress ? undefined : true,
    );
    const own = (await swarm()).TLSInfo.TrustRoot;
    assert.notEqual(own, before);
    await settled(own);
    await cfssl.stop();
    await first.updateNode('host3', { Role: 'manager' });
    await first.node('host3', ({ ManagerStatus }) => ManagerStatus?.Reachability === 'reachable');
    const mine = newAuthority('mine', Temporal.Now.instant());
    const change = { ForceRotate: 2, SigningCACert: mine.certificate, SigningCAKey: mine.key };
    assert.deepEqual(await update(change), [200, '']);
    await settled(mine.certificate);
  });
});
