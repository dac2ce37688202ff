import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';

import { Cfssl } from '@gantry/testing/cluster/cfssl.ts';
import { ClusterHosts, type ClusterHost } from '@gantry/testing/cluster/hosts.ts';
import { eventually } from '@gantry/testing/eventually.ts';

type Member = { certificate: string; root: string; nodeId: string; clusterId: string };

suite('an external authority', { concurrency: false }, () => {
  const parts = new AsyncDisposableStack();
  let cfssl: Cfssl;
  let [first, second, third]: ClusterHost[] = [];
  before(async () => {
    [first, second, third] = parts.use(await ClusterHosts.start(3)).hosts;
    cfssl = parts.use(new Cfssl(first!));
  });
  after(async () => await parts.disposeAsync());

  const spec = (url = cfssl.url): object => ({
    Spec: { CAConfig: { ExternalCAs: [{ Protocol: 'cfssl', URL: url }] } },
  });

  /** Issuer of the certificate that a node has now. */
  function certificateOf(host: ClusterHost): { unit: string; issuer: string; serial: string } {
    const { certificate, root, nodeId, clusterId } = JSON.parse(
      readFileSync(join(host.engine.dataRoot, 'cluster/member.json'), 'utf8'),
    ) as Member;
    const read = new X509Certificate(certificate);
    assert.equal(root, cfssl.root);
    assert.ok(read.verify(new X509Certificate(cfssl.root).publicKey));
    const { CN, O, OU } = read.toLegacyObject().subject as unknown as Record<string, string>;
    assert.deepEqual([CN, O], [nodeId, clusterId]);
    return { unit: OU!, issuer: read.issuer, serial: read.serialNumber };
  }

  async function initAnswer(body: object): Promise<[status: number, message: string]> {
    const answer = await first!.engine.post<{ message: string }>('/swarm/init', {
      ListenAddr: '10.77.0.1:2377',
      ...body,
    });
    return [answer.status, answer.body.message];
  }

  test('without it, or with another root, no cluster begins', async () => {
    const [wrong, said] = await initAnswer({
      Spec: { CAConfig: { ExternalCAs: [{ Protocol: 'acme', URL: cfssl.url }] } },
    });
    assert.deepEqual([wrong, said], [400, 'invalid protocol: "acme"']);
    assert.equal((await initAnswer(spec('ldap://x')))[0], 400);
    const [away, reason] = await initAnswer(spec());
    assert.equal(away, 500, reason);
    assert.match(reason, /no external certificate authority signs: http:.*connection refused/);

    await cfssl.start();
    const [foreign, because] = await initAnswer(spec());
    assert.equal(foreign, 500, because);
    assert.match(because, /does not lead to the cluster's root/);
    assert.equal((await first!.info()).LocalNodeState, 'inactive');
  });

  test('with its root laid down before, it signs for the first manager, and only it can', async () => {
    cfssl.layRoot();

    const [status, message] = await initAnswer({});
    assert.equal(status, 400);
    assert.match(message, /the key of the root is not here: an external CA has to sign/);
    await first!.init(spec());

    const { unit, issuer } = certificateOf(first!);
    assert.equal(unit, 'swarm-manager');
    assert.match(issuer, /CN=external root/);
    const swarm = await first!.swarm();
    const { Spec, TLSInfo } = swarm as unknown as {
      Spec: { CAConfig: { ExternalCAs: object[] } };
      TLSInfo: { TrustRoot: string; CertIssuerSubject: string };
    };
    assert.deepEqual(Spec.CAConfig.ExternalCAs, [{ Protocol: 'cfssl', URL: cfssl.url }]);
    assert.equal(TLSInfo.TrustRoot, cfssl.root);
    assert.match(Buffer.from(TLSInfo.CertIssuerSubject, 'base64').toString('latin1'), /DE.*Example.*external root/s);
    const without = await first!.engine.post(`/swarm/update?version=${swarm.Version.Index}`, { Name: 'default' });
    assert.equal(without.status, 400);
  });

  test('it signs for nodes that join, the first URL that answers; an old token is refused', async () => {
    const before = await first!.swarm();
    const CAConfig = { ExternalCAs: [{ URL: 'http://10.77.0.1:9/away' }, { Protocol: 'CFSSL', URL: cfssl.url }] };
    const changed = await first!.engine.post(
      `/swarm/update?version=${before.Version.Index}&rotateWorkerToken=1&rotateManagerToken=1`,
      { ...before.Spec, CAConfig },
    );
    assert.equal(changed.status, 200);

    for (const old of Object.values(before.JoinTokens)) {
      await assert.rejects(second!.join(first!, 'Worker', old), /join answered 400: .*A valid join token is necessary/);
    }
    await second!.join(first!, 'Manager');
    await third!.join(first!, 'Worker');

    assert.equal(certificateOf(second!).unit, 'swarm-manager');
    assert.equal(certificateOf(third!).unit, 'swarm-worker');
    await first!.node('host3', ({ Status }) => Status.State === 'ready');
    assert.equal((await first!.nodes()).length, 3);
  });

  test('a new role is a new certificate of it; while it is away the role waits', async () => {
    const { serial } = certificateOf(third!);
    await cfssl.stop();

    await first!.updateNode('host3', { Role: 'manager' });
    await eventually('the reason is told', async () => {
      return (await third!.info()).Error.includes('no external certificate authority signs') ? true : undefined;
    });
    assert.equal(certificateOf(third!).serial, serial);
    await cfssl.start();

    await first!.node('host3', ({ ManagerStatus }) => ManagerStatus?.Reachability === 'reachable');
    const renewed = certificateOf(third!);
    assert.equal(renewed.unit, 'swarm-manager');
    assert.notEqual(renewed.serial, serial);
    await third!.updateNode('host1', { Labels: { written: 'by the third' } });
  });

  test('a certificate that it gives for a short time is renewed before it is over', async () => {
    const usages = ['signing', 'key encipherment', 'server auth', 'client auth'];
    // Most of the six minutes from five minutes ago are over: it is due at once.
    const config = { signing: { default: { usages, expiry: '6m', backdate: '5m' } } };
    writeFileSync(join(cfssl.folder, 'config.json'), JSON.stringify(config));
    await cfssl.stop();
    await cfssl.start('-config config.json');

    await first!.updateNode('host3', { Role: 'worker' });
    await eventually('a certificate for a worker', async () =>
      certificateOf(third!).unit === 'swarm-worker' ? true : undefined,
    );
    const serials = new Set<string>();
    await eventually('two renewals', async () => {
      serials.add(certificateOf(third!).serial);
      return serials.size > 2 ? true : undefined;
    });

    assert.equal(certificateOf(third!).unit, 'swarm-worker');
    await first!.node('host3', ({ Status }) => Status.State === 'ready');
    assert.equal((await third!.info()).Error, '');
  });
});
