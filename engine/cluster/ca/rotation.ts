import { createHash, createPrivateKey, createPublicKey, X509Certificate } from 'node:crypto';

import { EngineError, refuseIf } from '../../lib/errors.ts';
import type { Authority, ClusterRecord, ClusterSpec } from '../state/records.ts';
import { crossSign, newAuthority } from './certificates.ts';

/** The root and key (PEM) that a client wants; the key is empty where only external authorities have it. */
export type WantedRoot = Readonly<{ certificate: string; key: string }>;

type Rotation = NonNullable<ClusterRecord['rotation']>;

const MIN_ROOT_DAYS = 365;
const INVALID = 'rpc error: code = InvalidArgument desc =';

/** The authority that issues certificates now, and the chain (PEM) by which nodes that trust the former root believe it. */
export function issuingAuthority({
  ca,
  rotation,
}: Pick<ClusterRecord, 'ca' | 'rotation'>): Authority & { chain: string } {
  return rotation === undefined ? { ...ca, chain: '' } : { ...rotation.root, chain: rotation.crossSigned };
}

/** Returns the roots (PEM) that nodes trust, and the digest of the key by which their certificates are to be signed. */
export function trustOf(cluster: Pick<ClusterRecord, 'ca' | 'rotation'>): { root: string; issuer: string } {
  const { ca, rotation } = cluster;
  return {
    root: rotation === undefined ? ca.certificate : ca.certificate + rotation.root.certificate,
    issuer: issuerDigest((rotation?.root ?? ca).certificate),
  };
}

/** Identifies an authority by its key. */
export function issuerDigest(certificate: string): string {
  return digest(new X509Certificate(certificate).publicKey.export({ type: 'spki', format: 'der' }));
}

/** Identifies the first of some roots. */
export function trustDigest(roots: string): string {
  return digest(new X509Certificate(roots).raw);
}

/** The first certificate of a text, in PEM: a digest of a token covers no further ones. */
export function firstCertificate(pem: string): string {
  return new X509Certificate(pem).toString();
}

/**
 * Returns the cluster with the root that its new specification, or the client, wants. Another root than the present one begins a rotation: it issues all
 * certificates from then on, and is the root once all nodes have one of it (`swarm/finish-rotation.ts`).
 */
export function withWantedRoot<C extends ClusterRecord>(
  cluster: C,
  spec: ClusterSpec,
  signing: WantedRoot,
  now: Temporal.Instant,
  elsewhere?: Rotation,
): C {
  const wanted = readRoot(signing, now);
  const forcedRotation = spec.forceRotate ?? 0;
  if (wanted === undefined) {
    if ((cluster.forcedRotation ?? 0) === forcedRotation) return cluster;
    return begin({ ...cluster, forcedRotation }, elsewhere?.root ?? newAuthority('swarm-ca', now), now, elsewhere);
  }
  const { rotation, ...settled } = cluster;
  const later = { ...settled, forcedRotation };
  if (wanted.certificate === cluster.ca.certificate) {
    return { ...later, ca: { ...cluster.ca, key: wanted.key || cluster.ca.key } } as typeof later & C;
  }
  if (rotation !== undefined && wanted.certificate === rotation.root.certificate) {
    const root = { ...rotation.root, key: wanted.key || rotation.root.key };
    return { ...later, rotation: { ...rotation, root } } as typeof later & C;
  }
  refuseIf(
    wanted.key === '' && !signsFor(spec, wanted.certificate, cluster),
    `${INVALID} there must be at least one valid, reachable external CA corresponding to the desired CA certificate`,
  );
  return begin({ ...later } as typeof later & C, wanted, now, elsewhere);
}

/** The root that an update begins a rotation to, if its certificate has to come from an external authority. */
export function rootToCrossSign(
  cluster: ClusterRecord,
  spec: ClusterSpec,
  signing: WantedRoot,
  now: Temporal.Instant,
): WantedRoot | undefined {
  if (cluster.ca.key !== '') return undefined;
  const wanted = readRoot(signing, now);
  if (wanted === undefined) {
    return (cluster.forcedRotation ?? 0) === (spec.forceRotate ?? 0) ? undefined : newAuthority('swarm-ca', now);
  }
  const known = [cluster.ca.certificate, cluster.rotation?.root.certificate];
  if (known.includes(wanted.certificate)) return undefined;
  refuseIf(wanted.key === '', `${INVALID} rotating from one external CA to a different external CA is not supported`);
  return wanted;
}

/** Whether an external authority is named for a root; without a root of its own it is for the present one. */
export function signsFor(spec: ClusterSpec, root: string, { ca }: Pick<ClusterRecord, 'ca'>): boolean {
  return externalsFor(spec, root, { ca }).length > 0;
}

export function externalsFor(
  { externalCas }: ClusterSpec,
  root: string,
  { ca }: Pick<ClusterRecord, 'ca'>,
): ClusterSpec['externalCas'] {
  return externalCas.filter(({ certificate = ca.certificate }) => certificate === root);
}

/** Reads PEM of a client. Undefined without a certificate in it. */
export function readRoot({ certificate, key }: WantedRoot, now: Temporal.Instant): WantedRoot | undefined {
  const [first, second] = certificatesIn(certificate);
  refuseIf(
    key !== '' && first === undefined,
    `${INVALID} if a signing CA key is provided, the signing CA cert must also be provided`,
  );
  if (first === undefined) return undefined;
  refuseIf(second !== undefined, `${INVALID} the desired CA certificate cannot contain multiple certificates`);
  const root = parse(first);
  refuseIf(!root.ca, `${INVALID} the desired CA certificate is not the certificate of an authority`);
  const lastMs = now.add({ hours: MIN_ROOT_DAYS * 24 }).epochMilliseconds;
  refuseIf(root.validToDate.getTime() < lastMs, `${INVALID} CA certificate expires too soon`);
  if (key !== '') refuseOtherKey(root, key);
  return { certificate: root.toString(), key };
}

/** PEM of a client as it is compared and stored; texts without a certificate are none. */
export function normalizeCertificate(pem: string): string {
  const [first] = certificatesIn(pem);
  return first === undefined ? '' : parse(first).toString();
}

function certificatesIn(pem: string): string[] {
  return pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
}

function parse(pem: string): X509Certificate {
  try {
    return new X509Certificate(pem);
  } catch (error) {
    throw new EngineError('invalid', `${INVALID} could not parse the desired CA certificate`, { cause: error });
  }
}

/** Keys of ECDSA and RSA sign here. */
function refuseOtherKey(root: X509Certificate, pem: string): void {
  let isOf: boolean;
  try {
    const key = createPrivateKey(pem);
    const spki = { type: 'spki', format: 'der' } as const;
    const isUsable = key.asymmetricKeyType === 'ec' || key.asymmetricKeyType === 'rsa';
    isOf = isUsable && createPublicKey(key).export(spki).equals(root.publicKey.export(spki));
  } catch (error) {
    throw new EngineError('invalid', `${INVALID} malformed private key`, { cause: error });
  }
  refuseIf(!isOf, `${INVALID} certificate key mismatch`);
}

/** `elsewhere`: the rotation to this root with a certificate by an external authority. */
function begin<C extends ClusterRecord>(
  cluster: C,
  root: WantedRoot,
  now: Temporal.Instant,
  elsewhere: Rotation | undefined,
): C {
  if (elsewhere?.root.certificate === root.certificate) return { ...cluster, rotation: elsewhere };
  refuseIf(
    cluster.ca.key === '',
    `${INVALID} the key of the present root is not here: it cannot sign the root that follows`,
  );
  return { ...cluster, rotation: { root, crossSigned: crossSign(cluster.ca, root.certificate, now) } };
}

function digest(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}
