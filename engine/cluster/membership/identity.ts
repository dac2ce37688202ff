import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';

import { Type, type Static } from 'typebox';

import type { Config } from '../../config/daemon-config.ts';
import { writeWhole } from '../../host/files/write-whole.ts';
import { lazyCheck } from '../../lib/lazy-check.ts';
import { readSealedKeys, writeSealedKeys, type ManagerKeys } from '../keys/sealed-file.ts';

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
  /** One root, or during a rotation also the one that follows. */
  root: Type.String(),
  /** Digest of the key that has signed the certificate; missing: that of the root. */
  issuer: Type.Optional(Type.String()),
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
 *
 * Once an unlock key seals them (`seal`), all keys are in one file, which that key encrypts, and the file of the identity has
 * none: it decides whether the manager is locked. etcd reads its key from memory then, by a link.
 */
export class MemberFolder {
  readonly path: string;
  /** The key of etcd's peer in memory, below the exec root. */
  readonly #peerKeyInMemory: string;
  /** While an unlock key seals the keys; `isWhole` once nothing of them is elsewhere on the disk. */
  #seal: Readonly<{ unlockKey: Buffer; keys: ManagerKeys; isWhole: boolean }> | undefined;
  #isForgotten = false;

  constructor({ dataRoot, execRoot }: Pick<Config, 'dataRoot' | 'execRoot'>) {
    this.path = join(dataRoot, 'cluster');
    this.#peerKeyInMemory = resolve(execRoot, 'etcd', 'peer-key.pem');
  }

  /** Whether a daemon has been in a cluster, or has tried to. */
  get exists(): boolean {
    return existsSync(this.path);
  }

  /** Whether an unlock key is needed for the keys. */
  get isLocked(): boolean {
    return this.#seal === undefined && this.#stored()?.key === '';
  }

  /** Without its key while the manager is locked. */
  read(): Identity | undefined {
    const stored = this.#stored();
    const { certificate, key } = this.#seal?.keys ?? {};
    if (stored === undefined || certificate === undefined || key === undefined) return stored;
    return { ...stored, certificate, key };
  }

  write(identity: Identity): void {
    if (this.#isForgotten) return;
    if (this.#seal === undefined) return writeWhole(this.#file, JSON.stringify(identity));
    const { certificate, key } = identity;
    if (this.#seal.keys.key !== key || this.#seal.keys.certificate !== certificate)
      this.#sealMore({ certificate, key });
    writeWhole(this.#file, JSON.stringify({ ...identity, key: '' }));
  }

  /** PEM, the list of revoked certificates in DER: etcd reads them at each handshake, the authority at its start. */
  writePeers({ key, ...files }: Readonly<{ certificate?: string; key?: string; ca?: string; crl?: Uint8Array }>): void {
    if (this.#isForgotten) return;
    const names = { certificate: 'certificate.pem', ca: 'ca.pem', crl: 'crl.der' } as const;
    for (const [name, content] of Object.entries(files)) {
      writeWhole(join(this.path, 'peers', names[name as keyof typeof names]), content);
    }
    if (key === undefined) return;
    if (this.#seal === undefined) return writeWhole(this.#peerKey, key);
    this.#sealMore({ peerKey: key });
    this.#lendPeerKey();
  }

  /** The key of the cluster's secrets and configs; undefined if this manager has none yet. */
  readDataKey(): Buffer | undefined {
    const sealed = this.#seal?.keys.dataKey;
    if (sealed !== undefined) return Buffer.from(sealed, 'base64');
    return existsSync(this.#dataKey) ? readFileSync(this.#dataKey) : undefined;
  }

  writeDataKey(key: Buffer): void {
    if (this.#isForgotten) return;
    if (this.#seal === undefined) writeWhole(this.#dataKey, key);
    else this.#sealMore({ dataKey: key.toString('base64') });
  }

  /** Has an unlock key seal the keys, or another one: in one step, before which the disk is as it was. */
  seal(unlockKey: Buffer): void {
    if (this.#isForgotten || (this.#seal?.isWhole === true && this.#seal.unlockKey.equals(unlockKey))) return;
    const keys = this.#seal?.keys ?? this.#keysOnDisk();
    writeSealedKeys(this.#sealed, unlockKey, keys);
    this.#finishSeal(unlockKey, keys);
  }

  /** Opens the keys, and returns the whole identity. Undefined: it is another unlock key. */
  unlock(unlockKey: Buffer): Identity | undefined {
    const keys = readSealedKeys(this.#sealed, unlockKey);
    if (keys === undefined) return undefined;
    this.#finishSeal(unlockKey, keys);
    return this.read();
  }

  /** Ends the seal: the keys are on the disk as they are. */
  unseal(): void {
    if (this.#isForgotten || this.#seal === undefined) return;
    const { peerKey, dataKey } = this.#seal.keys;
    if (peerKey !== undefined) writeWhole(this.#peerKey, peerKey); // instead of the link
    if (dataKey !== undefined) writeWhole(this.#dataKey, Buffer.from(dataKey, 'base64'));
    const identity = this.read();
    if (identity !== undefined) writeWhole(this.#file, JSON.stringify(identity));
    this.#seal = undefined;
    rmSync(this.#sealed, { force: true });
    rmSync(this.#peerKeyInMemory, { force: true });
  }

  /** Forgets the opened keys after an attempt to go on failed: the manager is locked again. */
  lockAgain(): void {
    this.#seal = undefined;
    this.settle();
  }

  /** Ends a change of the seal that a killed daemon began, and removes keys that it left in memory. */
  settle(): void {
    if (!this.isLocked) return rmSync(this.#sealed, { force: true });
    // Half-written files have the name of the whole one, and `.new`.
    for (const path of [this.#dataKey, this.#peerKey, this.#peerKeyInMemory]) {
      for (const each of [path, `${path}.new`]) rmSync(each, { force: true });
    }
    rmSync(`${this.#file}.new`, { force: true });
  }

  /** After the end of etcd: its key is in memory only while it runs. */
  takePeerKeyBack(): void {
    if (this.#seal !== undefined) rmSync(this.#peerKeyInMemory, { force: true });
  }

  /** For a start of etcd: its key is where it reads it. */
  lendPeerKey(): void {
    if (this.#seal !== undefined && !this.#isForgotten) this.#lendPeerKey();
  }

  /** Removes the files of a former manager. */
  removeEtcd(): void {
    for (const name of ['etcd', 'peers', DATA_KEY]) rmSync(join(this.path, name), { recursive: true, force: true });
    rmSync(this.#peerKeyInMemory, { force: true });
    if (this.#seal === undefined) return;
    const { unlockKey, keys } = this.#seal;
    const { peerKey: _peerKey, dataKey: _dataKey, ...own } = keys;
    writeSealedKeys(this.#sealed, unlockKey, own);
    this.#seal = { ...this.#seal, keys: own };
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
    rmSync(this.#peerKeyInMemory, { force: true });
  }

  #stored(): Identity | undefined {
    if (!existsSync(this.#file)) return undefined;
    const value: unknown = JSON.parse(readFileSync(this.#file, 'utf8'));
    if (!check.Check(value)) throw new Error(`${this.#file} is not what this daemon writes there`);
    return value;
  }

  #keysOnDisk(): ManagerKeys {
    const { certificate, key } = this.#stored() ?? {};
    return {
      ...(certificate !== undefined && key !== undefined && { certificate, key }),
      ...(existsSync(this.#peerKey) && { peerKey: readFileSync(this.#peerKey, 'utf8') }),
      ...(existsSync(this.#dataKey) && { dataKey: readFileSync(this.#dataKey).toString('base64') }),
    };
  }

  #sealMore(more: ManagerKeys): void {
    const { unlockKey, keys } = this.#seal!;
    const all = { ...keys, ...more };
    writeSealedKeys(this.#sealed, unlockKey, all);
    this.#seal = { ...this.#seal!, keys: all };
  }

  #finishSeal(unlockKey: Buffer, keys: ManagerKeys): void {
    this.#seal = { unlockKey, keys, isWhole: false };
    const stored = this.#stored();
    if (stored !== undefined && stored.key !== '') writeWhole(this.#file, JSON.stringify({ ...stored, key: '' }));
    for (const each of [this.#dataKey, `${this.#dataKey}.new`]) rmSync(each, { force: true });
    this.#lendPeerKey();
    this.#seal = { unlockKey, keys, isWhole: true };
  }

  #lendPeerKey(): void {
    const { peerKey } = this.#seal!.keys;
    if (peerKey === undefined) return;
    writeWhole(this.#peerKeyInMemory, peerKey);
    const link = `${this.#peerKey}.new`;
    mkdirSync(dirname(link), { recursive: true, mode: 0o700 });
    rmSync(link, { force: true });
    symlinkSync(this.#peerKeyInMemory, link);
    renameSync(link, this.#peerKey);
  }

  get #dataKey(): string {
    return join(this.path, DATA_KEY);
  }

  get #peerKey(): string {
    return join(this.path, 'peers', 'key.pem');
  }

  get #sealed(): string {
    return join(this.path, 'sealed-keys');
  }

  get #file(): string {
    return join(this.path, 'member.json');
  }
}
