import { X509Certificate } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import { newEncryptionKey } from '../../lib/encryption.ts';
import { EngineError } from '../../lib/errors.ts';
import { newAuthority, newKey, newRequest, revocationList, serialOf } from '../ca/certificates.ts';
import { signExternally } from '../ca/external.ts';
import { externalsFor, readRoot, type WantedRoot } from '../ca/rotation.ts';
import { newClusterId, newSecret } from '../ca/token.ts';
import type { Etcd } from '../etcd/gateway.ts';
import { raftOf } from '../etcd/members.ts';
import type { Op } from '../etcd/messages.ts';
import { findEtcd } from '../etcd/process.ts';
import { sealCluster } from '../keys/sealed-cluster.ts';
import { newUnlockKey, parseUnlockKey } from '../keys/unlock-key.ts';
import { freshNode, nodeCertificate } from '../leader/certificates.ts';
import { peerCertificate } from '../leader/peers.ts';
import { digestOfKey } from '../secrets/seal.ts';
import { keyOf, LEADER_KEY } from '../state/keys.ts';
import type { Authority, ClusterRecord, ClusterSpec, NodeRecord } from '../state/records.ts';
import { refuseWithoutKey } from '../swarm/update.ts';
import { addressText, readAddress, type Address } from './addresses.ts';
import type { Identity } from './identity.ts';
import { Member, type MemberNeeds } from './member.ts';

export type InitRequest = Readonly<{
  listen: Address;
  advertise: Address;
  spec: ClusterSpec;
  /** The root that a client wants; without one the node makes its own. */
  signing: WantedRoot;
  pools: Pick<ClusterRecord, 'addressPools' | 'subnetSize'>;
  dataPath?: string;
  tunnelPort?: number;
}>;

/** Makes a cluster of this node alone; a failure removes what was made. The member leads when this returns. */
export async function initCluster(
  needs: MemberNeeds,
  { listen, advertise, spec, signing, pools, dataPath, tunnelPort }: InitRequest,
): Promise<Member> {
  findEtcd();
  await using undo = new AsyncDisposableStack();
  undo.defer(() => needs.folder.remove());
  const now = needs.clock.now();
  const dataKey = newEncryptionKey();
  const cluster: ClusterRecord = {
    ...newCluster(spec, readRoot(signing, now) ?? laidRoot(needs.config.dataRoot), now),
    dataKey: digestOfKey(dataKey),
    ...pools,
    ...(tunnelPort && { tunnelPort }),
  };
  refuseWithoutKey(cluster, spec);
  const nodeId = newClusterId();
  const key = newRequest();
  const identity: Identity = {
    version: 1,
    nodeId,
    clusterId: cluster.id,
    role: 'manager',
    certificate: await firstCertificate(needs, cluster, nodeId, key),
    key: key.privateKey,
    root: cluster.ca.certificate,
    listen: addressText(listen),
    advertise: addressText(advertise),
    managers: [{ id: nodeId, address: addressText(advertise) }],
    raft: spec.raft,
    ...(dataPath && { dataPath }),
    ...(tunnelPort && { tunnelPort }),
  };
  if (cluster.unlockKey !== undefined) needs.folder.seal(parseUnlockKey(cluster.unlockKey));
  needs.folder.writeDataKey(dataKey);
  const member = undo.use(new Member(needs, identity));
  const manager = member.newManager();
  await manager.listen();
  const peerSerial = newPeer(needs, cluster, identity);
  const { ip, port } = readAddress(identity.advertise);
  const etcd = await manager.startEtcd({
    state: 'new',
    members: [{ name: nodeId, peerUrl: `https://${addressText({ ip, port: port + 1 })}` }],
  });
  const { self } = await raftOf(etcd);
  const node: NodeRecord = {
    ...freshNode(nodeId, 'manager', now),
    manager: { address: identity.advertise, member: self, peerSerial },
  };
  await putAll(etcd, { cluster: sealCluster(cluster, () => dataKey), nodes: [node] });
  await manager.follow();
  needs.folder.write(identity);
  await member.begin(manager).welcomed;
  undo.move();
  return member;
}

/**
 * Makes this manager the only one: from what its etcd has stored, with a new authority for peers, so that no other etcd can
 * ever talk to it again. The other managers become workers when they are back.
 */
export async function forceNewCluster(
  needs: MemberNeeds,
  member: Member,
  before: ClusterRecord,
  nodes: readonly NodeRecord[],
): Promise<Member> {
  const now = needs.clock.now();
  const { identity } = member;
  const dataKey = needs.folder.readDataKey();
  await member[Symbol.asyncDispose]();
  const cluster = { ...before, peerCa: newAuthority('swarm-peers', now), revokedPeers: [], updatedAt: now.toString() };
  const peerSerial = newPeer(needs, cluster, identity);
  const again = new Member(needs, { ...identity, managers: [{ id: identity.nodeId, address: identity.advertise }] });
  const manager = again.newManager();
  await manager.listen();
  const etcd = await manager.startEtcd('forced');
  const { self } = await raftOf(etcd);
  const alone = nodes.map((node) => aloneAs(node, identity, { member: self, peerSerial }));
  await putAll(etcd, { cluster: sealCluster(cluster, () => dataKey), nodes: alone, extra: [{ delete: LEADER_KEY }] });
  await manager.follow();
  again.change({});
  await again.begin(manager).welcomed;
  return again;
}

function aloneAs(
  node: NodeRecord,
  { nodeId, advertise }: Identity,
  own: { member: string; peerSerial: string },
): NodeRecord {
  if (node.id === nodeId)
    return {
      ...node,
      role: 'manager',
      spec: { ...node.spec, role: 'manager' },
      manager: { address: advertise, ...own },
    };
  const { manager: _manager, ...rest } = node;
  return { ...rest, role: 'worker', spec: { ...node.spec, role: 'worker' } };
}

/** Where the root of an external authority is laid before `init`, as with dockerd, below the data root. */
const LAID_ROOT = 'swarm/certificates/swarm-root-ca.crt';

function laidRoot(dataRoot: string): Authority | undefined {
  const path = join(dataRoot, LAID_ROOT);
  if (!existsSync(path)) return undefined;
  const pem = readFileSync(path, 'utf8');
  try {
    if (new X509Certificate(pem).ca) return { certificate: pem, key: '' };
  } catch (error) {
    throw new EngineError('failed', `${path} is no certificate`, { cause: error });
  }
  throw new EngineError('failed', `${path} is not the certificate of an authority`);
}

async function firstCertificate(
  { clock }: MemberNeeds,
  cluster: ClusterRecord,
  id: string,
  { publicKey, csr }: Readonly<{ publicKey: string; csr: string }>,
): Promise<string> {
  const { ca, spec } = cluster;
  const externals = externalsFor(spec, ca.certificate, cluster);
  if (externals.length === 0) return nodeCertificate(cluster, { id, role: 'manager' }, publicKey, clock.now());
  const subject = { name: id, unit: 'swarm-manager', organization: cluster.id };
  return await signExternally({ clock, root: ca.certificate }, externals, { csr, publicKey, subject });
}

function newCluster(spec: ClusterSpec, root: Authority | undefined, now: Temporal.Instant): ClusterRecord {
  return {
    id: newClusterId(),
    createdAt: now.toString(),
    updatedAt: now.toString(),
    spec,
    ca: root ?? newAuthority('swarm-ca', now),
    peerCa: newAuthority('swarm-peers', now),
    revokedPeers: [],
    joinSecrets: { worker: newSecret(), manager: newSecret() },
    ...(spec.forceRotate !== undefined && { forcedRotation: spec.forceRotate }),
    ...(spec.autoLock === true && { unlockKey: newUnlockKey() }),
  };
}

/** Writes what this node's etcd needs for its peers; the serial number of its certificate. */
function newPeer({ clock, folder }: MemberNeeds, cluster: ClusterRecord, { nodeId, advertise }: Identity): string {
  const { publicKey, privateKey } = newKey();
  const certificate = peerCertificate(cluster, nodeId, readAddress(advertise).ip, publicKey, clock.now());
  const crl = revocationList(cluster.peerCa, cluster.revokedPeers, clock.now());
  folder.writePeers({ certificate, key: privateKey, ca: cluster.peerCa.certificate, crl });
  return serialOf(certificate);
}

async function putAll(
  etcd: Etcd,
  { cluster, nodes, extra = [] }: { cluster: ClusterRecord; nodes: readonly NodeRecord[]; extra?: readonly Op[] },
): Promise<void> {
  const ops: Op[] = [
    { put: keyOf('cluster', ''), value: serializeRecord(cluster) },
    ...nodes.map((node) => ({ put: keyOf('node', node.id), value: serializeRecord(node) })),
    ...extra,
  ];
  await etcd.store({}, ops, 10_000);
}

function serializeRecord(record: object): string {
  const { version: _version, ...rest } = record as { version?: number };
  return JSON.stringify(rest);
}
