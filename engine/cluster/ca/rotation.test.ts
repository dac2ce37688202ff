import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { suite, test } from 'node:test';

import { newEncryptionKey } from '../../lib/encryption.ts';
import { openCluster, sealCluster } from '../keys/sealed-cluster.ts';
import { digestOfKey } from '../secrets/seal.ts';
import type { ClusterRecord, ClusterSpec } from '../state/records.ts';
import { issue, newAuthority, newKey } from './certificates.ts';
import { firstCertificate, issuingAuthority, trustOf, withWantedRoot } from './rotation.ts';

const now = Temporal.Now.instant();
const NONE = { certificate: '', key: '' };
const spec = (over: Partial<ClusterSpec> = {}): ClusterSpec => ({ externalCas: [], ...over }) as unknown as ClusterSpec;

function cluster(over: Partial<ClusterRecord> = {}): ClusterRecord {
  const authority = newAuthority('swarm-ca', now);
  const joinSecrets = { worker: 'of workers', manager: 'of managers' };
  return { id: 'c', ca: authority, peerCa: authority, joinSecrets, ...over } as unknown as ClusterRecord;
}

suite('the root of a cluster', () => {
  test('stays with the same number, and another number begins a rotation', () => {
    const before = cluster();
    assert.equal(withWantedRoot(before, spec(), NONE, now), before);

    const forced = withWantedRoot(before, spec({ forceRotate: 2 }), NONE, now);

    assert.notEqual(forced.rotation, undefined);
    assert.equal(withWantedRoot(forced, spec({ forceRotate: 2 }), NONE, now), forced);
    const again = withWantedRoot(forced, spec({ forceRotate: 1 }), NONE, now);
    assert.notEqual(again.rotation?.root.certificate, forced.rotation?.root.certificate);
  });

  test('the root that follows issues at once, for nodes that trust the former one too', () => {
    const before = cluster();
    const during = withWantedRoot(before, spec({ forceRotate: 1 }), NONE, now);
    const { chain, ...authority } = issuingAuthority(during);
    const { publicKey } = newKey();
    const leaf = new X509Certificate(issue(authority, { subject: { name: 'n' }, publicKey, now, lifeSeconds: 3600 }));
    const crossed = new X509Certificate(chain);
    const former = new X509Certificate(before.ca.certificate);

    assert.deepEqual([leaf.checkIssued(crossed), leaf.verify(crossed.publicKey)], [true, true]);
    assert.deepEqual([crossed.ca, crossed.checkIssued(former), crossed.verify(former.publicKey)], [true, true, true]);
    assert.equal(trustOf(during).root, before.ca.certificate + authority.certificate);
  });

  test('the present root ends a rotation, and the one that follows goes on with it', () => {
    const before = cluster();
    const during = withWantedRoot(before, spec({ forceRotate: 1 }), NONE, now);
    const { root } = during.rotation!;

    assert.equal(withWantedRoot(during, spec({ forceRotate: 2 }), before.ca, now).rotation, undefined);
    const same = withWantedRoot(during, spec({ forceRotate: 2 }), { ...root, key: '' }, now);
    assert.deepEqual(same.rotation, during.rotation);
  });

  test('an external authority may have the key of the root that follows, and not of the present one', () => {
    const other = newAuthority('other', now);
    const wanted = { certificate: new X509Certificate(other.certificate).toString(), key: '' };
    const externalCas = [
      { protocol: 'cfssl' as const, url: 'https://ca', options: {}, certificate: wanted.certificate },
    ];

    const during = withWantedRoot(cluster(), spec({ externalCas }), wanted, now);

    assert.deepEqual(issuingAuthority(during).key, '');
    assert.throws(() => withWantedRoot(cluster(), spec(), wanted, now), /at least one valid, reachable external CA/);
    const keyless = cluster({ ca: { ...other, key: '' } });
    assert.throws(() => withWantedRoot(keyless, spec({ forceRotate: 1 }), NONE, now), { kind: 'invalid' });
  });

  test('a root that is appended to another one is no root', () => {
    const [one, two] = [newAuthority('one', now).certificate, newAuthority('two', now).certificate];
    assert.equal(firstCertificate(one + two), one);
  });

  test('where managers are locked no key of it is stored in plain', () => {
    const key = newEncryptionKey();
    const locked = cluster({ unlockKey: 'SWMKEY-1-x', dataKey: digestOfKey(key) });
    const during = withWantedRoot(locked, spec({ forceRotate: 1 }), NONE, now);

    const sealed = sealCluster(during, () => key);

    assert.doesNotMatch(JSON.stringify(sealed), /PRIVATE KEY|of workers|of managers|SWMKEY/);
    assert.deepEqual(
      openCluster(sealed, (digest) => (digest === digestOfKey(key) ? key : undefined)),
      during,
    );
    assert.equal(
      openCluster(sealed, () => undefined),
      sealed,
    );
  });
});
