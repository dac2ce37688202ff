import { EngineError } from '../../lib/errors.ts';
import { issue } from '../ca/certificates.ts';
import { issuingAuthority, trustOf } from '../ca/rotation.ts';
import { idOfKey, parseToken, rootDigest, sameSecret } from '../ca/token.ts';
import type { Draft } from '../state/draft.ts';
import type { ClusterRecord, NodeRecord, NodeRole } from '../state/records.ts';
import { clusterOf, type View } from '../state/view.ts';
import type { CertificateAnswer, CertificateRequest } from '../wire/schemas.ts';
import type { Peer } from '../wire/server.ts';

const DAY_NS = 24 * 3600 * 1e9;

/** The certificate of a node, in PEM with its chain: its name is the node's id, its unit its role. */
export function nodeCertificate(
  cluster: Pick<ClusterRecord, 'ca' | 'id' | 'rotation' | 'spec'>,
  node: Readonly<{ id: string; role: NodeRole }>,
  publicKey: string,
  now: Temporal.Instant,
): string {
  const { id, spec } = cluster;
  const { chain, ...authority } = issuingAuthority(cluster);
  const unit = `swarm-${node.role}`;
  const lifeSeconds = (spec.nodeCertExpiryNs || 90 * DAY_NS) / 1e9;
  const subject = { name: node.id, unit, organization: id };
  return issue(authority, { subject, publicKey, now, lifeSeconds, dnsNames: [node.id, unit] }) + chain;
}

/**
 * Issues a certificate to the holder of a token, which makes it a node, or to a node: by the role that its record wants. The
 * demotion of a manager changes its record first, so a worker's is never given to a member of etcd. `elsewhere`: what an external
 * authority has signed for it.
 */
export function giveCertificate(
  draft: Draft,
  request: CertificateRequest,
  peer: Peer | undefined,
  now: Temporal.Instant,
  elsewhere?: Readonly<{ role: NodeRole; certificate: string }>,
): CertificateAnswer {
  const cluster = clusterOf(draft);
  const { node, role } = certificateHolder(draft, request, peer, now);
  if (elsewhere !== undefined && elsewhere.role !== role) {
    throw new EngineError('unavailable', 'the role of the node has changed meanwhile');
  }
  if (request.token !== undefined || node.role !== role)
    draft.put('node', { ...node, role, updatedAt: now.toString() });
  const certificate = elsewhere?.certificate ?? ownCertificate(cluster, { id: node.id, role }, request.publicKey, now);
  return { nodeId: node.id, clusterId: cluster.id, role, certificate, issuer: trustOf(cluster).issuer };
}

/** Finds the node and the role of a certificate for this request; throws where nobody would get one. */
export function certificateHolder(
  view: View,
  { publicKey, token }: CertificateRequest,
  peer: Peer | undefined,
  now: Temporal.Instant,
): { node: NodeRecord; role: NodeRole } {
  const node = token === undefined ? knownNode(view, peer) : newNode(view, clusterOf(view), { publicKey, token }, now);
  return { node, role: node.manager === undefined ? node.spec.role : 'manager' };
}

function ownCertificate(
  cluster: ClusterRecord,
  node: Readonly<{ id: string; role: NodeRole }>,
  publicKey: string,
  now: Temporal.Instant,
): string {
  try {
    return nodeCertificate(cluster, node, publicKey, now);
  } catch (error) {
    if (!(error instanceof TypeError) && !(error instanceof Error && 'code' in error)) throw error;
    throw new EngineError('invalid', 'the key for a certificate cannot be used', { cause: error });
  }
}

function knownNode(view: View, peer: Peer | undefined): NodeRecord {
  const node = peer === undefined ? undefined : view.get('node', peer.id);
  if (node === undefined)
    throw new EngineError('forbidden', 'a certificate of this cluster, or a join token, is needed');
  return node;
}

/** The id is that of its key, so that a node that asks twice, as the first answer was lost, is one node. */
function newNode(
  view: View,
  { ca, joinSecrets }: ClusterRecord,
  { publicKey, token }: Readonly<{ publicKey: string; token: string }>,
  now: Temporal.Instant,
): NodeRecord {
  const given = parseToken(token);
  const role = (['worker', 'manager'] as const).find((role) => sameSecret(joinSecrets[role], given.secret));
  if (role === undefined || given.rootDigest !== rootDigest(ca.certificate)) {
    throw new EngineError(
      'invalid',
      'rpc error: code = InvalidArgument desc = A valid join token is necessary to join this cluster',
    );
  }
  const id = idOfKey(publicKey);
  return view.get('node', id) ?? freshNode(id, role, now);
}

/** A node without a session so far. */
export function freshNode(id: string, role: NodeRole, now: Temporal.Instant): NodeRecord {
  const at = now.toString();
  return {
    id,
    createdAt: at,
    updatedAt: at,
    spec: { name: '', labels: {}, role, availability: 'active' },
    role,
    status: { state: 'unknown', message: '', address: '' },
  };
}
