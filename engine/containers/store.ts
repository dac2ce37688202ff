import { Type, type Static } from 'typebox';

import type { Database } from '../db/database.ts';
import { Instant, type Upgrade } from '../db/decode.ts';
import { createTable } from '../db/migration-sql.ts';
import { RecordTable } from '../db/table.ts';
import { IdMap } from '../host/users/id-map.ts';
import { EngineError } from '../lib/errors.ts';
import { ContainerConfig } from './settings/container-config-schema.ts';
import { HostConfig } from './settings/host-config/host-config-schema.ts';
import { ContainerState } from './state.ts';

/** A mount of the container. */
const MountPoint = Type.Object({
  type: Type.Union([Type.Literal('bind'), Type.Literal('volume'), Type.Literal('tmpfs'), Type.Literal('image')]),
  /** Name of the volume or image. */
  name: Type.Optional(Type.String()),
  /** Id of the image. */
  imageId: Type.Optional(Type.String()),
  /** The part of the volume or image that is mounted. */
  subpath: Type.Optional(Type.String()),
  /** Driver of the volume, by name. */
  driver: Type.Optional(Type.String()),
  /** The path on the host, for a volume its folder. Empty for tmpfs. */
  source: Type.String(),
  destination: Type.String(),
  /** The client's options, as written. */
  mode: Type.String(),
  writable: Type.Boolean(),
  propagation: Type.String(),
  /** The engine's choice of `rslave`; where the source is not on a shared mount it has no effect. */
  isSlaveByDefault: Type.Optional(Type.Boolean()),
  /** Whether an empty volume is first filled with the image's files at the destination. */
  copyUp: Type.Boolean(),
  /** A volume without a name by the user: made for this container, or for the one from which it has its volumes. */
  anonymous: Type.Boolean(),
  /** Options of a tmpfs, in the form of a mount. */
  options: Type.Optional(Type.String()),
  /** False: without mounts below the source. */
  recursive: Type.Optional(Type.Literal(false)),
  /** Whether mounts below the source are read-only too, if this one is. Undefined: not. */
  readOnlyBelow: Type.Optional(Type.Boolean()),
  /** Whether a missing folder is an error, and not created. */
  mustExist: Type.Optional(Type.Boolean()),
});
export type MountPoint = Readonly<Static<typeof MountPoint>>;

/** A container's settings in a network. */
const Attachment = Type.Object({
  /** As the client wrote it. */
  ipam: Type.Union([
    Type.Object({
      IPv4Address: Type.Optional(Type.String()),
      IPv6Address: Type.Optional(Type.String()),
      LinkLocalIPs: Type.Optional(Type.Union([Type.Immutable(Type.Array(Type.String())), Type.Null()])),
    }),
    Type.Null(),
  ]),
  /** Such as `web:alias`. */
  links: Type.Union([Type.Immutable(Type.Array(Type.String())), Type.Null()]),
  aliases: Type.Union([Type.Immutable(Type.Array(Type.String())), Type.Null()]),
  /** Empty: made from the address. */
  macAddress: Type.String(),
  /** For the driver of the network, which may know some of them. */
  driverOptions: Type.Optional(Type.Record(Type.String(), Type.String())),
  gwPriority: Type.Optional(Type.Integer()),
  /** All its names in a user network, its own first, once it has been connected or started. */
  dnsNames: Type.Optional(Type.Immutable(Type.Array(Type.String()))),
  /** Id of the network that it was in last; empty before the first start. */
  networkId: Type.String(),
});
export type Attachment = Readonly<Static<typeof Attachment>>;

const Container = Type.Object({
  id: Type.String(),
  /** Without the leading slash. */
  name: Type.String(),
  createdAt: Instant,
  imageId: Type.String(),
  /** As the client wrote it. */
  imageName: Type.String(),
  config: ContainerConfig,
  hostConfig: HostConfig,
  /** By the name of the network. */
  attachments: Type.Record(Type.String(), Attachment),
  path: Type.String(),
  args: Type.Immutable(Type.Array(Type.String())),
  state: ContainerState,
  /** Profile of AppArmor, since the last start; empty where the kernel has none. */
  appArmorProfile: Type.Optional(Type.String()),
  /** The cgroup of the last start, by which its processes are found even after a change of the settings. */
  cgroup: Type.Optional(
    Type.Object({
      driver: Type.Union([Type.Literal('systemd'), Type.Literal('cgroupfs')]),
      parent: Type.String(),
      prefix: Type.Optional(Type.String()),
    }),
  ),
  /** The ids of its users on the host, since the last start; undefined for those of the host. */
  idMap: Type.Optional(IdMap),
  /** The reason why the last start failed. */
  error: Type.String(),
  oomKilled: Type.Boolean(),
  /** Restarts by the restart policy since the last start by a user. */
  restartCount: Type.Integer(),
  /** A user ended it, so the restart policy does not start it again. */
  stoppedByUser: Type.Boolean(),
  mounts: Type.Immutable(Type.Array(MountPoint)),
  /** Empty before the first start, and with the log driver none. */
  logPath: Type.String(),
  /** A step of a running build: the next daemon removes it. */
  ofBuild: Type.Optional(Type.Literal(true)),
  /** It gets files from `memoryFiles` at each start, such as secrets, and does not start without them. */
  needsFiles: Type.Optional(Type.Literal(true)),
  /** The writes that take an update under way back. */
  limitWrites: Type.Optional(
    Type.Immutable(Type.Array(Type.Object({ path: Type.String(), before: Type.String(), after: Type.String() }))),
  ),
  /** Limits for systemd: words of `systemctl set-property`. */
  unitWords: Type.Optional(Type.Immutable(Type.Array(Type.String()))),
});
export type Container = Readonly<Static<typeof Container>>;

const migrations = [
  `CREATE TABLE containers (
     id TEXT PRIMARY KEY,
     name TEXT NOT NULL UNIQUE,
     record TEXT NOT NULL
   ) STRICT`,
  `ALTER TABLE containers RENAME TO old_containers;
   ${createTable('containers')}
   INSERT INTO containers (id, version, record) SELECT id, 1, record FROM old_containers ORDER BY rowid;
   DROP TABLE old_containers;`,
];

/** Version 2: mounts of volumes name the driver. Before, there was only one. */
const withVolumeDrivers: Upgrade = (old) => ({
  ...old,
  mounts: (old.mounts as { type: string }[]).map((mount) =>
    mount.type === 'volume' ? { ...mount, driver: 'local' } : mount,
  ),
});

/** Version 3: the networks of a container by name. Before, there was only that of its mode. */
const withAttachments: Upgrade = ({ networkingConfig: _asked, ...old }) => {
  const mode = (old.hostConfig as { NetworkMode: string }).NetworkMode;
  const { NetworkDisabled } = old.config as { NetworkDisabled?: boolean };
  const name = mode === 'default' || mode === '' ? 'bridge' : mode;
  const isIn = !mode.startsWith('container:') && (NetworkDisabled !== true || mode === 'host');
  const attachment: Attachment = { ipam: null, links: null, aliases: null, macAddress: '', networkId: '' };
  return { ...old, attachments: isIn ? { [name]: attachment } : {} };
};

/** The containers' records, all in memory; a change is committed before it is visible. */
export class ContainerStore {
  readonly #db: Database;
  readonly #table;

  constructor(db: Database) {
    this.#db = db;
    db.migrate('containers', migrations);
    this.#table = new RecordTable(db, {
      name: 'containers',
      schema: Container,
      id: ({ id }) => id,
      upgrades: [withVolumeDrivers, withAttachments],
      unique: { name: ({ name }) => name },
    });
  }

  /** Finds a container by full id, by name with or without its slash, or by unique prefix of the id. */
  find(ref: string): Container {
    const name = ref.startsWith('/') ? ref.slice(1) : ref;
    const exact = this.get(ref) ?? this.named(name);
    if (exact !== undefined) return exact;
    const matches = this.#table.idsFrom(ref);
    if (matches.length > 1) throw new EngineError('invalid', `Multiple IDs found with provided prefix: ${ref}`);
    return this.get(matches[0] ?? '') ?? notFound(ref);
  }

  get(id: string): Container | undefined {
    return this.#table.get(id);
  }

  /** The container with exactly this name. */
  named(name: string): Container | undefined {
    return this.#table.by('name', name);
  }

  /** In the order of their creation. */
  all(): readonly Container[] {
    return this.#table.all();
  }

  /** The ids of all containers, including those whose records cannot be decoded, so that their files stay. */
  ids(): ReadonlySet<string> {
    return new Set([...this.#table.ids(), ...this.#table.idsSetAside()]);
  }

  /** The ids of records that cannot be read: what they use is unknown. */
  idsSetAside(): readonly string[] {
    return this.#table.idsSetAside();
  }

  /** Throws `conflict` when another container has its name. */
  insert(container: Container): void {
    this.#refuseTakenName(container);
    this.#table.insert(container);
  }

  /** Replaces a record by the result of `work`, and commits before it returns. `work` may throw to refuse. */
  change(id: string, work: (current: Container) => Container): Container {
    if (!this.#table.has(id)) notFound(id);
    return this.#table.change(id, (current) => {
      const changed = work(current);
      this.#refuseTakenName(changed);
      return changed;
    });
  }

  delete(id: string): void {
    this.#table.delete(id);
  }

  /** Several changes in one commit; no reader sees a part of them. */
  together<T>(work: () => T): T {
    return this.#db.transaction(work);
  }

  #refuseTakenName({ id, name }: Container): void {
    const holder = this.named(name);
    if (holder !== undefined && holder.id !== id) throw nameTaken(name, holder.id);
  }
}

function notFound(ref: string): never {
  throw new EngineError('notFound', `No such container: ${ref}`);
}

/** The error for a name that is taken, in the words that clients search for. */
export function nameTaken(name: string, holderId: string): EngineError {
  return new EngineError(
    'conflict',
    `Conflict. The container name "/${name}" is already in use by container "${holderId}". ` +
      'You have to remove (or rename) that container to be able to reuse that name.',
  );
}
