import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';

import { Type, type Static } from 'typebox';

import { writeWhole } from '../../host/files/write-whole.ts';
import { lazyCheck } from '../../lib/lazy-check.ts';

const Raft = Type.Object({
  snapshotInterval: Type.Number(),
  keepOldSnapshots: Type.Number(),
  logEntriesForSlowFollowers: Type.Number(),
  heartbeatTick: Type.Number(),
  electionTick: Type.Number(),
});

/** A node's identity in its cluster: the certificate with its key and the root to trust (PEM), and the managers' addresses. */
const Identity = Type.Object({
  version: Type.Literal(1),
  nodeId: Type.String(),
  clusterId: Type.String(),
  role: Type.Union([Type.Literal('worker'), Type.Literal('manager')]),
  certificate: Type.String(),
  key: Type.String(),
  root: Type.String(),
  /** `ip:port`. */
  listen: Type.String(),
  advertise: Type.String(),
  managers: Type.Array(Type.Object({ id: Type.String(), address: Type.String() })),
  /** The node's address for the traffic of overlays; missing: the advertised one. */
  dataPath: Type.Optional(Type.String()),
  /** The port of the cluster's tunnels; missing: VXLAN's. */
  tunnelPort: Type.Optional(Type.Number()),
  /** Set where its etcd is a member, with the settings of its last start. */
  raft: Type.Optional(Raft),
  /** Set where its etcd learns, or has become a member without an answer that said so: the members at its first start. */
  joining: Type.Optional(
    Type.Object({ raft: Raft, members: Type.Array(Type.Object({ name: Type.String(), peerUrl: Type.String() })) }),
  ),
});
export type Identity = Readonly<Static<typeof Identity>>;

const check = lazyCheck(Identity);
const DATA_KEY = 'data-key';

/**
 * The folder of one membership, below the data root: a file with the node's identity, which holds its key, so that it is no
 * part of the database and its backups; etcd's data; the files that etcd's peers need; and the key of
 * secrets and configs, which is in no record of etcd. Without the file the node is in no
 * cluster. After `forget` nothing is written any more: background work may end later than the membership.
 */
export class MemberFolder {
  readonly path: string;
  #isForgotten = false;

  constructor(dataRoot: string) {
    this.path = join(dataRoot, 'cluster');
  }

  /** Whether a daemon has been in a cluster, or has tried to. */
  get exists(): boolean {
    return existsSync(this.path);
  }

  read(): Identity | undefined {
    if (!existsSync(this.#file)) return undefined;
    const value: unknown = JSON.parse(readFileSync(this.#file, 'utf8'));
    if (!check.Check(value)) throw new Error(`${this.#file} is not what this daemon writes there`);
    return value;
  }

  write(identity: Identity): void {
    if (this.#isForgotten) return;
    writeWhole(this.#file, JSON.stringify(identity));
  }

  /** PEM, the list of revoked certificates in DER: etcd reads them at each handshake, the authority at its start. */
  writePeers(files: Readonly<{ certificate?: string; key?: string; ca?: string; crl?: Uint8Array }>): void {
    if (this.#isForgotten) return;
    const names = { certificate: 'certificate.pem', key: 'key.pem', ca: 'ca.pem', crl: 'crl.der' } as const;
    for (const [name, content] of Object.entries(files)) {
      writeWhole(join(this.path, 'peers', names[name as keyof typeof names]), content);
    }
  }

  /** The key of the cluster's secrets and configs; undefined if this manager has none yet. */
  readDataKey(): Buffer | undefined {
    return existsSync(this.#dataKey) ? readFileSync(this.#dataKey) : undefined;
  }

  writeDataKey(key: Uint8Array): void {
    if (!this.#isForgotten) writeWhole(this.#dataKey, key);
  }

  /** Removes the files of a former manager. */
  removeEtcd(): void {
    for (const name of ['etcd', 'peers', DATA_KEY]) rmSync(join(this.path, name), { recursive: true, force: true });
  }

  /** Ends the membership on disk: the next start removes a folder without an identity. */
  forget(): void {
    this.#isForgotten = true;
    rmSync(this.#file, { force: true });
  }

  /** Removes all files; etcd has to be stopped. */
  remove(): void {
    this.forget();
    rmSync(this.path, { recursive: true, force: true });
  }

  get #dataKey(): string {
    return join(this.path, DATA_KEY);
  }

  get #file(): string {
    return join(this.path, 'member.json');
  }
}
