import { EngineError } from '../../lib/errors.ts';
import { issue } from '../ca/certificates.ts';
import { idOfKey, parseToken, rootDigest, sameSecret } from '../ca/token.ts';
import type { Draft } from '../state/draft.ts';
import type { ClusterRecord, NodeRecord, NodeRole } from '../state/records.ts';
import { clusterOf } from '../state/view.ts';
import type { CertificateAnswer } from '../wire/schemas.ts';
import type { Peer } from '../wire/server.ts';

type Request = Readonly<{ publicKey: string; token?: string }>;
const DAY_NS = 24 * 3600 * 1e9;

/** The certificate of a node, in PEM: its name is the node's id, its unit its role. */
export function nodeCertificate(
  { ca, id, spec }: Pick<ClusterRecord, 'ca' | 'id' | 'spec'>,
  node: Readonly<{ id: string; role: NodeRole }>,
  publicKey: string,
  now: Temporal.Instant,
): string {
  const unit = `swarm-${node.role}`;
  const lifeSeconds = (spec.nodeCertExpiryNs || 90 * DAY_NS) / 1e9;
  const subject = { name: node.id, unit, organization: id };
  return issue(ca, { subject, publicKey, now, lifeSeconds, dnsNames: [node.id, unit] });
}

/**
 * Issues a certificate to the holder of a token, which makes it a node, or to a node: by the role that its record wants. The
 * demotion of a manager changes its record first, so a worker's is never given to a member of etcd.
 */
export function giveCertificate(
  draft: Draft,
  { publicKey, token }: Request,
  peer: Peer | undefined,
  now: Temporal.Instant,
): CertificateAnswer {
  const cluster = clusterOf(draft);
  const node = token === undefined ? knownNode(draft, peer) : newNode(draft, cluster, { publicKey, token }, now);
  const role = node.manager === undefined ? node.spec.role : 'manager';
  if (token !== undefined || node.role !== role) draft.put('node', { ...node, role, updatedAt: now.toString() });
  try {
    const certificate = nodeCertificate(cluster, { id: node.id, role }, publicKey, now);
    return { nodeId: node.id, clusterId: cluster.id, role, certificate };
  } catch (error) {
    if (!(error instanceof TypeError) && !(error instanceof Error && 'code' in error)) throw error;
    throw new EngineError('invalid', 'the key for a certificate cannot be used', { cause: error });
  }
}

function knownNode(draft: Draft, peer: Peer | undefined): NodeRecord {
  const node = peer === undefined ? undefined : draft.get('node', peer.id);
  if (node === undefined)
    throw new EngineError('forbidden', 'a certificate of this cluster, or a join token, is needed');
  return node;
}

/** The id is that of its key, so that a node that asks twice, as the first answer was lost, is one node. */
function newNode(
  draft: Draft,
  { ca, joinSecrets }: ClusterRecord,
  { publicKey, token }: Required<Request>,
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
  return draft.get('node', id) ?? freshNode(id, role, now);
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
