import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';

import { eventually } from '@gantry/testing/eventually.ts';

import { BothEngines, type Side } from '../both-engines.ts';

const INIT = { ListenAddr: '127.0.0.1:2377', AdvertiseAddr: '127.0.0.1' };
type CaConfig = Record<string, unknown>;
type TlsInfo = { TrustRoot: string; CertIssuerSubject: string; CertIssuerPublicKey: string };
type Swarm = {
  Version: { Index: number };
  Spec: { CAConfig: CaConfig };
  TLSInfo: TlsInfo;
  RootRotationInProgress: boolean;
  JoinTokens: { Worker: string };
};

/** Roots with their keys, by openssl. */
class Roots implements Disposable {
  readonly #folder = mkdtempSync(join(tmpdir(), 'gantry-roots-'));

  make(name: string, key: readonly string[], days: number): { certificate: string; key: string } {
    const [certificate, keyFile] = ['pem', 'key'].map((end) => join(this.#folder, `${name}.${end}`));
    const words = ['-x509', '-nodes', '-days', String(days), '-subj', `/CN=${name}`, '-keyout', keyFile!];
    execFileSync('openssl', ['req', ...words, '-newkey', ...key, '-out', certificate!], { stdio: 'pipe' });
    return { certificate: readFileSync(certificate!, 'utf8'), key: readFileSync(keyFile!, 'utf8') };
  }

  [Symbol.dispose](): void {
    rmSync(this.#folder, { recursive: true });
  }
}

suite('the authority of a cluster, beside dockerd', { concurrency: false }, () => {
  let engines: BothEngines;
  using roots = new Roots();
  const ec = ['ec', '-pkeyopt', 'ec_paramgen_curve:P-256'];
  const first = roots.make('first', ec, 4000);
  const second = roots.make('second', ['rsa:2048'], 4000);
  const short = roots.make('short', ec, 30);
  before(async () => {
    engines = await BothEngines.start('1.41');
    await engines.both(async ({ api }) => {
      assert.equal((await api.post('/swarm/init', INIT)).status, 200);
    });
  });
  after(async () => await engines[Symbol.asyncDispose]());

  const swarm = async ({ api }: Side): Promise<Swarm> => (await api.get<Swarm>('/swarm')).body;
  const settled = async (side: Side): Promise<Swarm> =>
    await eventually(`the end of the rotation of ${side.name}`, async () => {
      const now = await swarm(side);
      const [node] = (await side.api.get<{ Description: { TLSInfo: TlsInfo } }[]>('/nodes')).body;
      const isReady = JSON.stringify(node?.Description.TLSInfo) === JSON.stringify(now.TLSInfo);
      return now.RootRotationInProgress || !isReady ? undefined : now;
    });
  async function update({ api }: Side, change: CaConfig): Promise<{ status: number; said: string }> {
    return await eventually('an update of the present version', async () => {
      const { body } = await api.get<Swarm>('/swarm');
      const CAConfig = { ...body.Spec.CAConfig, ...change };
      const { status, raw } = await api.post(`/swarm/update?version=${body.Version.Index}`, { ...body.Spec, CAConfig });
      const said = raw.toString().trim();
      return said.includes('out of sequence') ? undefined : { status, said };
    });
  }

  const REFUSED: readonly (readonly [name: string, change: CaConfig])[] = [
    ['a key without a certificate', { SigningCAKey: first.key }],
    ['a root that ends soon', { SigningCACert: short.certificate, SigningCAKey: short.key }],
    ['two roots', { SigningCACert: first.certificate + second.certificate, SigningCAKey: first.key }],
  ];
  for (const [name, change] of REFUSED) {
    test(`refused: ${name}`, async () => {
      const { ours, theirs } = await engines.both(async (side) => await update(side, change));
      assert.deepEqual(ours, theirs);
    });
  }

  test('refused, in our words: a key of another root, a root without a key and an authority', async () => {
    for (const change of [
      { SigningCACert: first.certificate, SigningCAKey: second.key },
      { SigningCACert: first.certificate, SigningCAKey: 'x' },
      { SigningCACert: first.certificate },
    ]) {
      const { ours, theirs } = await engines.both(async (side) => await update(side, change));
      assert.deepEqual([ours.status, theirs.status], [400, 400]);
    }
  });

  const ROTATIONS: readonly (readonly [name: string, change: CaConfig])[] = [
    ['a forced one', { ForceRotate: 1 }],
    ['to a root of ECDSA', { ForceRotate: 2, SigningCACert: first.certificate, SigningCAKey: first.key }],
    ['to a root of RSA', { ForceRotate: 3, SigningCACert: second.certificate, SigningCAKey: second.key }],
  ];
  for (const [name, change] of ROTATIONS) {
    test(`a rotation: ${name}`, async () => {
      const seen = await engines.both(async (side) => {
        const old = await settled(side);
        const answer = await update(side, change);
        const now = await settled(side);
        return {
          answer,
          config: now.Spec.CAConfig,
          isAnother: now.TLSInfo.TrustRoot !== old.TLSInfo.TrustRoot,
          isWanted: now.TLSInfo.TrustRoot.trim() === String(change['SigningCACert']).trim(),
          issuer: name === 'a forced one' ? '' : [now.TLSInfo.CertIssuerSubject, now.TLSInfo.CertIssuerPublicKey],
          tokens: [2, 3].map(
            (part) => now.JoinTokens.Worker.split('-')[part] === old.JoinTokens.Worker.split('-')[part],
          ),
        };
      });
      assert.deepEqual(seen.ours, seen.theirs);
      assert.equal(seen.ours.isAnother, true);
    });
  }

  test('the same number, and the present root, rotate nothing', async () => {
    const seen = await engines.both(async (side) => {
      const before = await settled(side);
      const root = { SigningCACert: second.certificate, SigningCAKey: second.key };
      const answers = [
        await update(side, { ForceRotate: 3, ...root }),
        await update(side, { ForceRotate: 4, ...root }),
      ];
      const now = await settled(side);
      return { answers, isSame: now.TLSInfo.TrustRoot === before.TLSInfo.TrustRoot };
    });
    assert.deepEqual(seen.ours, seen.theirs);
    assert.equal(seen.ours.isSame, true);
  });
});
