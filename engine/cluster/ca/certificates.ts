import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  randomBytes,
  sign,
  type KeyObject,
  X509Certificate,
} from 'node:crypto';

import { ipBytes } from '../../lib/notations/ip-address.ts';
import type { Authority } from '../state/records.ts';
import {
  bits,
  boolean,
  contentOf,
  explicit,
  extentOf,
  integer,
  octets,
  oid,
  sequence,
  set,
  time,
  tlv,
  utf8,
  type Der,
} from './der.ts';

const OID = {
  commonName: '2.5.4.3',
  organization: '2.5.4.10',
  unit: '2.5.4.11',
  ecdsaWithSha256: '1.2.840.10045.4.3.2',
  rsaWithSha256: '1.2.840.113549.1.1.11',
  authorityKey: '2.5.29.35',
  subjectKey: '2.5.29.14',
  keyUsage: '2.5.29.15',
  alternativeNames: '2.5.29.17',
  basicConstraints: '2.5.29.19',
  extendedKeyUsage: '2.5.29.37',
  serverAuth: '1.3.6.1.5.5.7.3.1',
  clientAuth: '1.3.6.1.5.5.7.3.2',
} as const;
const ROOT_HOURS = 20 * 365 * 24;
/** The difference that clocks may have. */
const BACKDATED_HOURS = 1;
const SERIAL_BYTES = 16;
const EXTENSIONS = 0xa3;

export type Subject = Readonly<{ name: string; unit?: string; organization?: string }>;
type Wanted = Readonly<{
  subject: Subject;
  /** PEM. */
  publicKey: string;
  now: Temporal.Instant;
  lifeSeconds: number;
  dnsNames?: readonly string[];
  addresses?: readonly string[];
}>;

type KeyPair = Readonly<{ publicKey: string; privateKey: string }>;

/** A new key of P-256, in PEM. */
export function newKey(): KeyPair {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return {
    publicKey: publicKey.export({ type: 'spki', format: 'pem' }),
    privateKey: privateKey.export({ type: 'pkcs8', format: 'pem' }),
  };
}

/** A new key, and what an authority is asked with for a certificate of it. */
export function newRequest(): KeyPair & Readonly<{ csr: string }> {
  const key = newKey();
  return { ...key, csr: certificateRequest(key) };
}

/** A request for a certificate (PKCS #10), in PEM: it proves that its sender has the key. Who it is for is said beside it. */
function certificateRequest({ publicKey, privateKey }: KeyPair): string {
  const version = integer(Buffer.from([0]));
  const body = sequence(version, nameOf({ name: 'swarm-node' }), spki(publicKey), explicit(0));
  return pem('CERTIFICATE REQUEST', signBody(body, privateKey));
}

/** A request for another authority's certificate of this one's name and key, in PEM. */
export function authorityRequest(authority: Authority): string {
  const version = integer(Buffer.from([0]));
  const body = sequence(version, issuerOf(authority), spkiOfIssuer(authority), explicit(0));
  return pem('CERTIFICATE REQUEST', signBody(body, authority.key));
}

/** A new authority with a certificate of its own, for twenty years. */
export function newAuthority(name: string, now: Temporal.Instant): Authority {
  const { publicKey, privateKey } = newKey();
  const key = spki(publicKey);
  const extensions = [
    extension(OID.basicConstraints, true, sequence(boolean(true))),
    extension(OID.keyUsage, true, bits(Buffer.from([0b0000_0110]), 1)), // keyCertSign, cRLSign
    extension(OID.subjectKey, false, octets(keyId(key))),
  ];
  const life = lifeOf(now, ROOT_HOURS * 3600);
  const certificate = signCertificate(nameOf({ name }), nameOf({ name }), key, life, extensions, privateKey);
  return { certificate, key: privateKey };
}

/** A certificate of another root by this authority, for nodes that trust only this one. */
export function crossSign(authority: Authority, root: string, now: Temporal.Instant): string {
  const key = spkiOfIssuer({ certificate: root });
  const extensions = [
    extension(OID.basicConstraints, true, sequence(boolean(true))),
    extension(OID.keyUsage, true, bits(Buffer.from([0b0000_0110]), 1)),
    extension(OID.subjectKey, false, octets(subjectKeyOf(root) ?? keyId(key))),
    ...authorityKey(authority),
  ];
  const subject = issuerOf({ certificate: root });
  const life = lifeOf(now, ROOT_HOURS * 3600);
  return signCertificate(subject, issuerOf(authority), key, life, extensions, authority.key);
}

/** A certificate for a server and client of TLS, in PEM. */
export function issue(authority: Authority, wanted: Wanted): string {
  const names = [
    ...(wanted.dnsNames ?? []).map((name) => tlv(0x82, Buffer.from(name))),
    ...(wanted.addresses ?? []).map((address) => tlv(0x87, ipBytes(address))),
  ];
  const extensions = [
    extension(OID.basicConstraints, true, sequence()),
    extension(OID.keyUsage, true, bits(Buffer.from([0b1000_0000]), 7)), // digitalSignature
    extension(OID.extendedKeyUsage, false, sequence(oid(OID.serverAuth), oid(OID.clientAuth))),
    ...(names.length === 0 ? [] : [extension(OID.alternativeNames, false, sequence(...names))]),
    ...authorityKey(authority),
  ];
  const life = lifeOf(wanted.now, wanted.lifeSeconds);
  const subject = nameOf(wanted.subject);
  return signCertificate(subject, issuerOf(authority), spki(wanted.publicKey), life, extensions, authority.key);
}

/** The list of revoked certificates, in DER, for a year. */
export function revocationList(
  authority: Authority,
  revoked: readonly Readonly<{ serial: string; revoked: number }>[],
  now: Temporal.Instant,
): Buffer {
  const entries = revoked.map(({ serial, revoked: second }) =>
    sequence(integer(Buffer.from(serial, 'hex')), time(Temporal.Instant.fromEpochMilliseconds(second * 1000))),
  );
  const from = time(now.subtract({ hours: BACKDATED_HOURS }));
  const until = time(now.add({ hours: ROOT_HOURS }));
  const list = entries.length === 0 ? [] : [sequence(...entries)];
  const algorithm = algorithmOf(createPrivateKey(authority.key));
  return signBody(
    sequence(integer(Buffer.from([1])), algorithm, issuerOf(authority), from, until, ...list),
    authority.key,
  );
}

/** The issuer's name, in DER. */
export function issuerOf({ certificate }: Pick<Authority, 'certificate'>): Der {
  // Certificate, and in it what is signed: version, serial number, algorithm, issuer, time of life, subject.
  const [body] = contentOf(new X509Certificate(certificate).raw);
  const [, , , , , subject] = contentOf(body!);
  return subject!;
}

export function serialOf(certificate: string): string {
  return new X509Certificate(certificate).serialNumber.padStart(SERIAL_BYTES * 2, '0').toLowerCase();
}

/** PEM. */
function signCertificate(
  subject: Der,
  issuer: Der,
  key: Buffer,
  life: Der,
  extensions: readonly Der[],
  privateKey: string,
): string {
  const serial = randomBytes(SERIAL_BYTES);
  serial[0] = (serial[0]! & 0x7f) | 0x40; // positive, and always of the same length
  const body = sequence(
    explicit(0, integer(Buffer.from([2]))), // version 3
    integer(serial),
    algorithmOf(createPrivateKey(privateKey)),
    issuer,
    life,
    subject,
    key,
    explicit(3, sequence(...extensions)),
  );
  return pem('CERTIFICATE', signBody(body, privateKey));
}

function signBody(body: Der, privateKey: string): Buffer {
  const key = createPrivateKey(privateKey);
  return sequence(body, algorithmOf(key), bits(sign('sha256', body, key)));
}

/** Roots of clients may have keys of RSA. */
function algorithmOf({ asymmetricKeyType }: KeyObject): Der {
  return asymmetricKeyType === 'rsa' ? sequence(oid(OID.rsaWithSha256), tlv(0x05)) : sequence(oid(OID.ecdsaWithSha256));
}

/** Names the issuer's key as the issuer's own certificate does; roots of clients need not. */
function authorityKey({ certificate }: Pick<Authority, 'certificate'>): Der[] {
  const id = subjectKeyOf(certificate);
  return id === undefined ? [] : [extension(OID.authorityKey, false, sequence(tlv(0x80, id)))];
}

/** The identifier of a certificate's key in it. */
function subjectKeyOf(certificate: string): Buffer | undefined {
  const [body] = contentOf(new X509Certificate(certificate).raw);
  const extensions = contentOf(body!).find((part) => part[0] === EXTENSIONS);
  const all = extensions === undefined ? [] : contentOf(contentOf(extensions)[0]!);
  const found = all.find((each) => contentOf(each)[0]!.equals(oid(OID.subjectKey)));
  const value = found === undefined ? undefined : contentOf(found).at(-1);
  return value === undefined ? undefined : valueOf(valueOf(value));
}

/** The bytes of a value without its tag and length. */
function valueOf(der: Der): Buffer {
  return der.subarray(extentOf(der, 0)[0]);
}

function nameOf({ name, unit, organization }: Subject): Der {
  return sequence(...part(OID.organization, organization), ...part(OID.unit, unit), ...part(OID.commonName, name));
}

function part(type: string, value: string | undefined): Der[] {
  return value === undefined ? [] : [set(sequence(oid(type), utf8(value)))];
}

function lifeOf(now: Temporal.Instant, seconds: number): Der {
  return sequence(time(now.subtract({ hours: BACKDATED_HOURS })), time(now.add({ seconds })));
}

function extension(type: string, isCritical: boolean, value: Der): Der {
  return sequence(oid(type), ...(isCritical ? [boolean(true)] : []), octets(value));
}

/** SHA-1 of the key's bits alone (RFC 5280, 4.2.1.2), so that certificates of other software for the key name the same. */
function keyId(key: Buffer): Buffer {
  const [, bits] = contentOf(key);
  return createHash('sha1').update(valueOf(bits!).subarray(1)).digest();
}

function spkiOfIssuer({ certificate }: Pick<Authority, 'certificate'>): Buffer {
  return new X509Certificate(certificate).publicKey.export({ type: 'spki', format: 'der' });
}

/** Only a key of P-256 is taken. */
function spki(publicKey: string): Buffer {
  const key = createPublicKey(publicKey);
  if (key.asymmetricKeyType !== 'ec' || key.asymmetricKeyDetails?.namedCurve !== 'prime256v1') {
    throw new TypeError('a key of P-256 is expected');
  }
  return key.export({ type: 'spki', format: 'der' });
}

function pem(label: string, der: Uint8Array): string {
  const text = Buffer.from(der).toString('base64').replaceAll(/.{64}/g, '$&\n').trimEnd();
  return `-----BEGIN ${label}-----\n${text}\n-----END ${label}-----\n`;
}
