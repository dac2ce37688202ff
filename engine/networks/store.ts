import type { Database } from '../db/database.ts';
import type { PublishedPort } from './ports.ts';
import type { Attachment } from './sandbox.ts';

export type NetworkDriver = 'bridge' | 'host' | 'null';

/** A network. `bridge`, `subnet` and `gateway` are there for the driver `bridge` only, once the bridge was set up. */
export type NetworkRecord = Readonly<{
  id: string;
  name: string;
  driver: NetworkDriver;
  createdAt: Temporal.Instant;
  bridge?: string;
  subnet?: string;
  gateway?: string;
}>;

const STEPS = [
  `CREATE TABLE networks (
     id TEXT PRIMARY KEY,
     name TEXT NOT NULL UNIQUE,
     driver TEXT NOT NULL,
     created_ns INTEGER NOT NULL,
     bridge TEXT,
     subnet TEXT,
     gateway TEXT
   ) STRICT;
   CREATE TABLE attachments (
     container_id TEXT NOT NULL,
     network_id TEXT NOT NULL REFERENCES networks (id),
     endpoint_id TEXT NOT NULL,
     sandbox_id TEXT NOT NULL,
     link TEXT NOT NULL,
     ip TEXT,
     prefix_length INTEGER NOT NULL,
     gateway TEXT NOT NULL,
     mac TEXT NOT NULL,
     ports TEXT NOT NULL,
     PRIMARY KEY (container_id, network_id),
     UNIQUE (network_id, ip)
   ) STRICT;`,
];

/** The records of networks and of the containers in them. All of them are in memory as well: inspects read there. */
export class NetworkStore {
  readonly #db: Database;
  readonly #networks = new Map<string, NetworkRecord>();
  readonly #attachments = new Map<string, Attachment>();

  constructor(db: Database) {
    this.#db = db;
    db.migrate('networks', STEPS);
    this.#load();
  }

  networks(): NetworkRecord[] {
    return [...this.#networks.values()];
  }

  networkNamed(name: string): NetworkRecord | undefined {
    return this.networks().find((network) => network.name === name);
  }

  network(id: string): NetworkRecord | undefined {
    return this.#networks.get(id);
  }

  saveNetwork(network: NetworkRecord): void {
    this.#db.sql
      .prepare(
        `INSERT INTO networks VALUES (?, ?, ?, ?, ?, ?, ?)
         ON CONFLICT (id) DO UPDATE SET bridge = excluded.bridge, subnet = excluded.subnet, gateway = excluded.gateway`,
      )
      .run(
        network.id,
        network.name,
        network.driver,
        network.createdAt.epochNanoseconds,
        network.bridge ?? null,
        network.subnet ?? null,
        network.gateway ?? null,
      );
    this.#networks.set(network.id, network);
  }

  attachments(): Attachment[] {
    return [...this.#attachments.values()];
  }

  attachmentOf(containerId: string): Attachment | undefined {
    return this.#attachments.get(containerId);
  }

  insertAttachment(attachment: Attachment): void {
    this.#db.sql
      .prepare('INSERT INTO attachments VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)')
      .run(
        attachment.containerId,
        attachment.networkId,
        attachment.endpointId,
        attachment.sandboxId,
        attachment.link,
        attachment.ipAddress === '' ? null : attachment.ipAddress,
        attachment.prefixLength,
        attachment.gateway,
        attachment.macAddress,
        JSON.stringify(attachment.ports),
      );
    this.#attachments.set(attachment.containerId, attachment);
    this.#db.onRollback(() => this.#attachments.delete(attachment.containerId));
  }

  deleteAttachment(containerId: string): void {
    this.#db.sql.prepare('DELETE FROM attachments WHERE container_id = ?').run(containerId);
    const attachment = this.#attachments.get(containerId);
    this.#attachments.delete(containerId);
    if (attachment !== undefined) this.#db.onRollback(() => this.#attachments.set(containerId, attachment));
  }

  #load(): void {
    const networks = this.#db.sql.prepare('SELECT * FROM networks ORDER BY created_ns');
    networks.setReadBigInts(true); // nanoseconds are beyond what a double holds
    for (const row of networks.all() as unknown as NetworkRow[]) {
      this.#networks.set(row.id, {
        id: row.id,
        name: row.name,
        driver: row.driver,
        createdAt: Temporal.Instant.fromEpochNanoseconds(row.created_ns),
        bridge: row.bridge ?? undefined,
        subnet: row.subnet ?? undefined,
        gateway: row.gateway ?? undefined,
      });
    }
    const attachments = this.#db.sql.prepare('SELECT * FROM attachments');
    for (const row of attachments.all() as unknown as AttachmentRow[]) {
      this.#attachments.set(row.container_id, {
        containerId: row.container_id,
        networkId: row.network_id,
        networkName: this.#networks.get(row.network_id)?.name ?? '',
        endpointId: row.endpoint_id,
        sandboxId: row.sandbox_id,
        link: row.link,
        ipAddress: row.ip ?? '',
        prefixLength: row.prefix_length,
        gateway: row.gateway,
        macAddress: row.mac,
        ports: JSON.parse(row.ports) as PublishedPort[],
      });
    }
  }
}

type NetworkRow = {
  id: string;
  name: string;
  driver: NetworkDriver;
  created_ns: bigint;
  bridge: string | null;
  subnet: string | null;
  gateway: string | null;
};

type AttachmentRow = {
  container_id: string;
  network_id: string;
  endpoint_id: string;
  sandbox_id: string;
  link: string;
  ip: string | null;
  prefix_length: number;
  gateway: string;
  mac: string;
  ports: string;
};
