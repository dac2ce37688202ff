import assert from 'node:assert/strict';
import crypto from 'node:crypto';
import { syncBuiltinESMExports } from 'node:module';
import { suite, test, type TestContext } from 'node:test';

import { systemClock } from '../../lib/clock.ts';
import { newAuthority, newKey } from '../ca/certificates.ts';
import { newSecret, sameSecret, tokenOf } from '../ca/token.ts';
import { Draft } from '../state/draft.ts';
import { Replica } from '../state/replica.ts';
import { clusterOf } from '../state/view.ts';
import { readSpec } from '../swarm/spec.ts';
import { updateCluster } from '../swarm/update.ts';
import { certificateHolder } from './certificates.ts';

const NOW = Temporal.Instant.from('2026-01-01T00:00:00Z');
const ca = newAuthority('swarm-ca', NOW);
const spec = readSpec({});
const { publicKey } = newKey();
const REFUSED = { kind: 'invalid', message: /A valid join token is necessary to join this cluster/ };

function cluster(): Draft {
  const draft = new Draft(new Replica(systemClock));
  const joinSecrets = { worker: newSecret(), manager: newSecret() };
  const dates = { createdAt: NOW.toString(), updatedAt: NOW.toString() };
  draft.put('cluster', { ...dates, id: 'c1', spec, ca, peerCa: ca, revokedPeers: [], joinSecrets });
  return draft;
}

function roleFor(draft: Draft, secret: string): string {
  const token = tokenOf(ca.certificate, secret);
  return certificateHolder(draft, { publicKey, csr: '', token }, undefined, NOW).role;
}

/** Lengths in bytes of the pairs that are compared in constant time from now on. */
function comparedIn(t: TestContext): [number, number][] {
  const compared: [number, number][] = [];
  const { timingSafeEqual } = crypto;
  t.mock.method(crypto, 'timingSafeEqual', (one: Buffer, other: Buffer) => {
    compared.push([one.length, other.length]);
    return timingSafeEqual(one, other);
  });
  syncBuiltinESMExports();
  t.after(() => {
    t.mock.restoreAll();
    syncBuiltinESMExports();
  });
  return compared;
}

suite('join tokens', () => {
  test('a wrong token is compared with both secrets in constant time', (t) => {
    const draft = cluster();
    const near = clusterOf(draft).joinSecrets.worker.replace(/.$/, (last) => (last === '0' ? '1' : '0'));
    const compared = comparedIn(t);

    for (const secret of [near, newSecret()]) assert.throws(() => roleFor(draft, secret), REFUSED);

    assert.deepEqual(
      compared,
      Array.from({ length: 4 }, () => [32, 32]),
    );
  });

  test('texts of any lengths are compared in constant time', (t) => {
    const compared = comparedIn(t);

    for (const other of ['', 'b', 'ä', 'x'.repeat(5000)]) assert.equal(sameSecret('a', other), false);

    assert.deepEqual(
      compared,
      Array.from({ length: 4 }, () => [32, 32]),
    );
  });

  for (const [role, other] of [
    ['worker', 'manager'],
    ['manager', 'worker'],
  ] as const) {
    test(`a rotated token of a ${role} is void, and that of a ${other} is not`, () => {
      const draft = cluster();
      const old = clusterOf(draft).joinSecrets;
      assert.equal(roleFor(draft, old[role]), role);
      const version = clusterOf(draft).version;

      updateCluster(draft, { spec, version, rotateWorker: role === 'worker', rotateManager: role === 'manager' }, NOW);

      assert.throws(() => roleFor(draft, old[role]), REFUSED);
      assert.equal(roleFor(draft, clusterOf(draft).joinSecrets[role]), role);
      assert.equal(roleFor(draft, old[other]), other);
    });
  }
});
