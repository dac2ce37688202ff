import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import { issue, issuerOf, newAuthority, newKey, revocationList, serialOf } from './certificates.ts';
import { newSecret, parseToken, rootDigest, sameSecret, tokenOf } from './token.ts';

const NOW = Temporal.Instant.from('2026-11-22T12:00:00Z');
const DAY = 24 * 3600;
const root = newAuthority('swarm-ca', NOW);
const { publicKey, privateKey } = newKey();
const leaf = issue(root, {
  subject: { name: 'node1', unit: 'swarm-manager', organization: 'cluster1' },
  publicKey,
  now: NOW,
  lifeSeconds: 90 * DAY,
  dnsNames: ['node1', 'swarm-manager'],
  addresses: ['10.0.0.1', 'fd00::1'],
});

test('a certificate has name, role and cluster, the key that was asked for, and an hour of the past', () => {
  const read = new X509Certificate(leaf);

  assert.equal(read.subject, 'O=cluster1\nOU=swarm-manager\nCN=node1');
  assert.equal(read.issuer, 'CN=swarm-ca');
  assert.equal(read.subjectAltName, 'DNS:node1, DNS:swarm-manager, IP Address:10.0.0.1, IP Address:FD00:0:0:0:0:0:0:1');
  assert.equal(read.ca, false);
  assert.equal(read.validFromDate.toISOString(), '2026-11-22T11:00:00.000Z');
  assert.equal(read.validToDate.toISOString(), '2027-02-20T12:00:00.000Z');
  assert.ok(read.checkPrivateKey(createPrivateKey(privateKey)));
  assert.ok(read.verify(new X509Certificate(root.certificate).publicKey));
  assert.ok(!read.verify(new X509Certificate(newAuthority('swarm-ca', NOW).certificate).publicKey));
});

test('openssl verifies the chain, and refuses certificates of the revocation list', () => {
  const folder = mkdtempSync(join(tmpdir(), 'gantry-ca-'));
  const file = (name: string, content: string | Buffer): string => {
    writeFileSync(join(folder, name), content);
    return join(folder, name);
  };
  const at = String(NOW.epochMilliseconds / 1000);
  const other = issue(root, { subject: { name: 'node2' }, publicKey, now: NOW, lifeSeconds: DAY });
  const revoked = [{ serial: serialOf(leaf), revoked: NOW.epochMilliseconds / 1000 }];
  const list = execFileSync('openssl', ['crl', '-inform', 'DER'], { input: revocationList(root, revoked, NOW) });
  const verify = (certificate: string, ...words: string[]): string =>
    execFileSync('openssl', ['verify', '-x509_strict', '-attime', at, '-CAfile', ca, ...words, certificate], {
      encoding: 'utf8',
      stdio: 'pipe',
    });
  const ca = file('ca.pem', root.certificate);
  const crl = ['-crl_check', '-CRLfile', file('crl.pem', list)];

  assert.match(verify(file('leaf.pem', leaf)), /OK/);
  assert.match(verify(file('other.pem', other), ...crl), /OK/);
  assert.throws(() => verify(join(folder, 'leaf.pem'), ...crl), /certificate revoked/);

  rmSync(folder, { recursive: true });
});

test('a root lasts for twenty years, past the end of short years', () => {
  const read = new X509Certificate(root.certificate);
  const late = new X509Certificate(newAuthority('late', Temporal.Instant.from('2049-06-01T00:00:00Z')).certificate);

  assert.ok(read.ca);
  assert.equal(read.validToDate.getUTCFullYear(), 2046);
  assert.equal(late.validToDate.getUTCFullYear(), 2069);
  assert.equal(issuerOf(root).toString('base64'), 'MBMxETAPBgNVBAMMCHN3YXJtLWNh');
});

test('only keys of the expected kind get a certificate', () => {
  for (const key of ['no key', root.certificate.slice(0, 60)]) {
    assert.throws(() => issue(root, { subject: { name: 'x' }, publicKey: key, now: NOW, lifeSeconds: DAY }));
  }
});

test('a token names the root and the secret, and anything else is refused', () => {
  const secret = newSecret();
  const token = tokenOf(root.certificate, secret);

  assert.match(token, /^SWMTKN-1-[0-9a-z]{50}-[0-9a-z]{25}$/);
  assert.deepEqual(parseToken(token), { rootDigest: rootDigest(root.certificate), secret });
  for (const wrong of ['', 'abc', token.slice(1), `${token}0`, token.replace('-1-', '-2-'), token.toUpperCase()]) {
    assert.throws(() => parseToken(wrong), { message: 'invalid join token', kind: 'invalid' });
  }
  assert.ok(sameSecret(secret, secret));
  assert.ok(!sameSecret(secret, newSecret()));
  assert.ok(!sameSecret(secret, ''));
});
