import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';

import { ClusterHosts, type ClusterHost } from '@gantry/testing/cluster/hosts.ts';
import { eventually } from '@gantry/testing/eventually.ts';

type TlsInfo = { TrustRoot: string; CertIssuerPublicKey: string };
type Cluster = { RootRotationInProgress: boolean; TLSInfo: TlsInfo; JoinTokens: { Worker: string; Manager: string } };
type Node = { Description: { Hostname: string; TLSInfo: TlsInfo } };
type Spec = { CAConfig: { ForceRotate?: number } };

suite('a rotation of the root', { concurrency: false }, () => {
  let all: ClusterHosts;
  let [one, two, three]: ClusterHost[] = [];
  before(async () => {
    all = await ClusterHosts.start(4, { version: '1.41' });
    [one, two, three] = all.hosts;
    await one!.init();
    await two!.join(one!, 'Manager');
    await three!.join(one!, 'Worker');
  });
  after(async () => await all[Symbol.asyncDispose]());

  const cluster = async (): Promise<Cluster> => (await one!.swarm()) as unknown as Cluster;
  const tlsOf = async (name: string): Promise<TlsInfo> =>
    ((await one!.node(name)) as unknown as Node).Description.TLSInfo;
  const identityOf = ({ engine }: ClusterHost): { certificate: string; root: string } =>
    JSON.parse(readFileSync(join(engine.dataRoot, 'cluster/member.json'), 'utf8')) as ReturnType<typeof identityOf>;

  async function rotate(): Promise<void> {
    await eventually('an update', async () => {
      const { Version, Spec } = await one!.swarm();
      const { CAConfig } = Spec as Spec;
      const next = { ...Spec, CAConfig: { ...CAConfig, ForceRotate: (CAConfig.ForceRotate ?? 0) + 1 } };
      const { status } = await one!.engine.post(`/swarm/update?version=${Version.Index}`, next);
      return status === 200 ? true : undefined;
    });
  }

  test('nodes get certificates of the new root, and one that is down ends the rotation when it is back', async () => {
    const former = await cluster();
    await three!.engine.kill();
    await rotate();

    const during = await cluster();
    assert.deepEqual([during.RootRotationInProgress, during.JoinTokens], [true, former.JoinTokens]);
    assert.equal(during.TLSInfo.TrustRoot, former.TLSInfo.TrustRoot);
    assert.notEqual(during.TLSInfo.CertIssuerPublicKey, former.TLSInfo.CertIssuerPublicKey);
    for (const { name } of [one!, two!]) {
      await eventually(`a certificate of ${name}`, async () => {
        return (await tlsOf(name)).CertIssuerPublicKey === during.TLSInfo.CertIssuerPublicKey ? true : undefined;
      });
    }
    assert.deepEqual(await tlsOf('host3'), former.TLSInfo);
    assert.equal((await cluster()).RootRotationInProgress, true);
    const fourth = all.hosts[3]!;
    await fourth.join(one!, 'Worker', former.JoinTokens.Worker); // by the present token
    await three!.engine.startAgain();
    const later = await eventually('the end of the rotation', async () => {
      const now = await cluster();
      return now.RootRotationInProgress ? undefined : now;
    });

    assert.notEqual(later.TLSInfo.TrustRoot, former.TLSInfo.TrustRoot);
    assert.equal(later.TLSInfo.CertIssuerPublicKey, during.TLSInfo.CertIssuerPublicKey);
    const [, , , digest] = later.JoinTokens.Worker.split('-');
    assert.notEqual(digest, former.JoinTokens.Worker.split('-')[3]);
    for (const { name } of all.hosts) {
      await eventually(`the root of ${name}`, async () => {
        return (await tlsOf(name)).TrustRoot === later.TLSInfo.TrustRoot ? true : undefined;
      });
    }
    for (const host of all.hosts) {
      await eventually(`the root on the disk of ${host.name}`, async () => {
        const { certificate, root } = identityOf(host);
        const isNew = new X509Certificate(certificate).verify(new X509Certificate(root).publicKey);
        return (isNew && root === later.TLSInfo.TrustRoot) || (await Promise.resolve(undefined));
      });
    }
  });

  test('old tokens let nobody in, new ones do, and daemons start with the new root', async () => {
    const [first, , , fourth] = all.hosts;
    const { JoinTokens } = await cluster();
    assert.equal((await fourth!.engine.post('/swarm/leave')).status, 200);
    const old = { ListenAddr: `${fourth!.ip}:2377`, RemoteAddrs: [`${first!.ip}:2377`] };
    const refused = await fourth!.engine.post<{ message: string }>('/swarm/join', {
      ...old,
      JoinToken: JoinTokens.Worker.replace(/(?<=^SWMTKN-1-)./, (digit) => (digit === '1' ? '2' : '1')),
    });
    assert.match(refused.body.message, /remote CA does not match fingerprint/);
    await fourth!.join(first!, 'Worker', JoinTokens.Worker);

    await Promise.all([two!, three!].map(async ({ engine }) => await engine.kill()));
    await Promise.all([two!, three!].map(async ({ engine }) => await engine.startAgain()));

    for (const { name } of [two!, three!]) await one!.node(name, ({ Status }) => Status.State === 'ready');
  });
});
