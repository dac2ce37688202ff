import type { Database } from '../db/database.ts';
import type { Endpoint } from './endpoint.ts';
import type { PublishedPort } from './ports.ts';

/** A network. `bridge`, `subnet` and `gateway` exist only for the driver `bridge`, once the bridge was set up. */
export type NetworkRecord = Readonly<{
  id: string;
  name: string;
  /** Name of its driver. */
  driver: string;
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
  `CREATE TABLE endpoints (
     id TEXT PRIMARY KEY,
     container_id TEXT NOT NULL,
     network_id TEXT NOT NULL REFERENCES networks (id),
     sandbox_id TEXT NOT NULL,
     link TEXT NOT NULL,
     ip TEXT,
     prefix_length INTEGER NOT NULL,
     gateway TEXT NOT NULL,
     mac TEXT NOT NULL,
     ports TEXT NOT NULL,
     UNIQUE (container_id, network_id),
     UNIQUE (network_id, ip)
   ) STRICT;
   INSERT INTO endpoints
     SELECT endpoint_id, container_id, network_id, sandbox_id, link, ip, prefix_length, gateway, mac, ports
     FROM attachments;
   DROP TABLE attachments;`,
];

const NONE: readonly Endpoint[] = [];

/** The records of networks and of the endpoints in them. All of them are in memory as well: inspects read there. */
export class NetworkStore {
  readonly #db: Database;
  readonly #networks = new Map<string, NetworkRecord>();
  /** By container, in the order of their joining. */
  readonly #endpoints = new Map<string, readonly Endpoint[]>();

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

  endpoints(): Endpoint[] {
    return [...this.#endpoints.values()].flat();
  }

  endpointsOf(containerId: string): readonly Endpoint[] {
    return this.#endpoints.get(containerId) ?? NONE;
  }

  insertEndpoint(endpoint: Endpoint): void {
    const { id, containerId, networkId, sandboxId, link, ipAddress, prefixLength, gateway, macAddress } = endpoint;
    this.#db.sql
      .prepare('INSERT INTO endpoints VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)')
      .run(
        id,
        containerId,
        networkId,
        sandboxId,
        link,
        ipAddress === '' ? null : ipAddress,
        prefixLength,
        gateway,
        macAddress,
        JSON.stringify(endpoint.ports),
      );
    this.#replace(containerId, [...this.endpointsOf(containerId), endpoint]);
  }

  deleteEndpoint({ id, containerId }: Endpoint): void {
    this.#db.sql.prepare('DELETE FROM endpoints WHERE id = ?').run(id);
    const others = this.endpointsOf(containerId).filter((endpoint) => endpoint.id !== id);
    this.#replace(containerId, others);
  }

  /** Changes the memory, and reverts it when the transaction is rolled back. */
  #replace(containerId: string, endpoints: readonly Endpoint[]): void {
    const before = this.endpointsOf(containerId);
    this.#db.onRollback(() => this.#keep(containerId, before));
    this.#keep(containerId, endpoints);
  }

  #keep(containerId: string, endpoints: readonly Endpoint[]): void {
    if (endpoints.length === 0) this.#endpoints.delete(containerId);
    else this.#endpoints.set(containerId, endpoints);
  }

  #load(): void {
    const networks = this.#db.sql.prepare('SELECT * FROM networks ORDER BY created_ns');
    networks.setReadBigInts(true); // a double cannot hold nanoseconds
    const { badRecords } = this.#db;
    for (const network of badRecords.decodeAll('networks', 'id', networks.iterate(), networkOf)) {
      this.#networks.set(network.id, network);
    }
    const endpoints = this.#db.sql.prepare('SELECT * FROM endpoints ORDER BY rowid').iterate();
    for (const endpoint of badRecords.decodeAll('endpoints', 'id', endpoints, (row) => this.#endpointOf(row))) {
      this.#keep(endpoint.containerId, [...this.endpointsOf(endpoint.containerId), endpoint]);
    }
  }

  #endpointOf(columns: unknown): Endpoint {
    const row = columns as EndpointRow;
    return {
      id: row.id,
      sandboxId: row.sandbox_id,
      containerId: row.container_id,
      networkId: row.network_id,
      networkName: this.#networks.get(row.network_id)?.name ?? '',
      link: row.link,
      ipAddress: row.ip ?? '',
      prefixLength: row.prefix_length,
      gateway: row.gateway,
      macAddress: row.mac,
      ports: JSON.parse(row.ports) as PublishedPort[],
    };
  }
}

function networkOf(columns: unknown): NetworkRecord {
  const row = columns as NetworkRow;
  return {
    id: row.id,
    name: row.name,
    driver: row.driver,
    createdAt: Temporal.Instant.fromEpochNanoseconds(row.created_ns),
    bridge: row.bridge ?? undefined,
    subnet: row.subnet ?? undefined,
    gateway: row.gateway ?? undefined,
  };
}

type NetworkRow = {
  id: string;
  name: string;
  driver: string;
  created_ns: bigint;
  bridge: string | null;
  subnet: string | null;
  gateway: string | null;
};

type EndpointRow = {
  id: string;
  container_id: string;
  network_id: string;
  sandbox_id: string;
  link: string;
  ip: string | null;
  prefix_length: number;
  gateway: string;
  mac: string;
  ports: string;
};
