import { createHash, randomBytes, timingSafeEqual, X509Certificate } from 'node:crypto';

import { EngineError } from '../../lib/errors.ts';

const DIGEST_DIGITS = 50;
const SECRET_DIGITS = 25;
const TOKEN = /^SWMTKN-1-([0-9a-z]{50})-([0-9a-z]{25})$/;

/** Parts of a join token: the digest of the root that the node may trust, and a secret that decides its role. */
export type JoinToken = Readonly<{ rootDigest: string; secret: string }>;

export function newSecret(): string {
  return base36(randomBytes(16), SECRET_DIGITS);
}

/** An id of a node, a service, a task or a cluster: 25 digits, as swarm's are. */
export function newClusterId(): string {
  return base36(randomBytes(16), SECRET_DIGITS);
}

/** The id of the node that has this key. */
export function idOfKey(publicKey: string): string {
  return base36(sha256(publicKey).subarray(0, 16), SECRET_DIGITS);
}

/** `rootCertificate` is PEM. */
export function tokenOf(rootCertificate: string, secret: string): string {
  return `SWMTKN-1-${rootDigest(rootCertificate)}-${secret}`;
}

export function parseToken(text: string): JoinToken {
  const [, digest, secret] = TOKEN.exec(text) ?? [];
  if (digest === undefined || secret === undefined) throw new EngineError('invalid', 'invalid join token');
  return { rootDigest: digest, secret };
}

export function rootDigest(certificate: string): string {
  const hex = new X509Certificate(certificate).fingerprint256.replaceAll(':', '');
  return base36(Buffer.from(hex, 'hex'), DIGEST_DIGITS);
}

/** Compares in constant time, whatever the lengths: by digests. */
export function sameSecret(one: string, other: string): boolean {
  return timingSafeEqual(sha256(one), sha256(other));
}

function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

function base36(bytes: Buffer, digits: number): string {
  return BigInt(`0x${bytes.toString('hex')}`)
    .toString(36)
    .padStart(digits, '0');
}
