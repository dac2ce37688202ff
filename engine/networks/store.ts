import { Type, type Static } from 'typebox';

import type { Database } from '../db/database.ts';
import { Instant } from '../db/decode.ts';
import { createTable, instantOf, jsonOf, recordOf } from '../db/migration-sql.ts';
import { RecordTable } from '../db/table.ts';
import { Endpoint } from './endpoints/endpoint.ts';

/** One range of addresses, as the client wrote it. */
export const PoolConfig = Type.Object({
  subnet: Type.String(),
  range: Type.Optional(Type.String()),
  gateway: Type.Optional(Type.String()),
  auxiliary: Type.Optional(Type.Record(Type.String(), Type.String())),
});
export type PoolConfig = Readonly<Static<typeof PoolConfig>>;

const texts = Type.Record(Type.String(), Type.String());

/** The client's settings of a network. Option names have docker's prefix, whichever the client used. */
const Custom = Type.Object({
  internal: Type.Boolean(),
  attachable: Type.Boolean(),
  enableIPv6: Type.Boolean(),
  /** Default: true. */
  enableIPv4: Type.Optional(Type.Literal(false)),
  options: texts,
  labels: texts,
  ipam: Type.Object({
    driver: Type.String(),
    options: Type.Union([texts, Type.Null()]),
    /** Empty: the addresses were chosen. */
    pools: Type.Immutable(Type.Array(PoolConfig)),
  }),
  /** Only settings for other networks: nothing of it is on the machine. */
  configOnly: Type.Optional(Type.Literal(true)),
  /** Name of the network that gave it its settings. */
  configFrom: Type.Optional(Type.String()),
});
export type Custom = Readonly<Static<typeof Custom>>;

/** A network. `bridge`, `subnet` and `gateway` exist only for the driver `bridge`, once the bridge was set up. */
const NetworkRecord = Type.Object({
  id: Type.String(),
  name: Type.String(),
  /** Name of its driver. */
  driver: Type.String(),
  createdAt: Instant,
  bridge: Type.Optional(Type.String()),
  subnet: Type.Optional(Type.String()),
  gateway: Type.Optional(Type.String()),
  /** If the client, or for the network `bridge` the settings, want IPv6. */
  ipv6: Type.Optional(Type.Immutable(Type.Object({ subnet: Type.String(), gateway: Type.String() }))),
  /** Further ranges, in the client's order: those of IPv4, then those of IPv6. */
  more: Type.Optional(Type.Immutable(Type.Array(Type.Object({ subnet: Type.String(), gateway: Type.String() })))),
  /** For a cluster's network: its number on the wire, this node's address for the others, and whether it leads published ports in. */
  overlay: Type.Optional(
    Type.Immutable(Type.Object({ vni: Type.Integer(), local: Type.String(), ingress: Type.Boolean() })),
  ),
  /** Where an address plugin has given the ranges: its names of them. */
  leased: Type.Optional(
    Type.Immutable(Type.Object({ space: Type.String(), four: Type.String(), six: Type.Optional(Type.String()) })),
  ),
  /** Only of a network that a client has made. */
  custom: Type.Optional(Custom),
});
export type NetworkRecord = Readonly<Static<typeof NetworkRecord>>;

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
  `ALTER TABLE networks RENAME TO old_networks;
   ALTER TABLE endpoints RENAME TO old_endpoints;
   ${createTable('networks')}
   ${createTable('endpoints')}
   INSERT INTO networks (id, version, record)
     SELECT id, 1, ${recordOf({
       id: 'id',
       name: 'name',
       driver: 'driver',
       createdAt: instantOf('created_ns'),
       bridge: 'bridge',
       subnet: 'subnet',
       gateway: 'gateway',
     })}
     FROM old_networks ORDER BY created_ns;
   INSERT INTO endpoints (id, version, record)
     SELECT id, 1, ${recordOf({
       id: 'id',
       sandboxId: 'sandbox_id',
       containerId: 'container_id',
       networkId: 'network_id',
       networkName: "ifnull((SELECT name FROM old_networks WHERE old_networks.id = network_id), '')",
       link: 'link',
       ipAddress: "ifnull(ip, '')",
       prefixLength: 'prefix_length',
       gateway: 'gateway',
       macAddress: 'mac',
       ports: jsonOf('ports'),
     })}
     FROM old_endpoints ORDER BY rowid;
   DROP TABLE old_endpoints;
   DROP TABLE old_networks;`,
];

/** The records of networks and of the endpoints in them. All of them are in memory: inspects read there. */
export class NetworkStore {
  readonly #networks;
  readonly #endpoints;

  constructor(db: Database) {
    db.migrate('networks', STEPS);
    this.#networks = new RecordTable(db, {
      name: 'networks',
      schema: NetworkRecord,
      id: ({ id }) => id,
      groups: { name: ({ name }) => name },
    });
    this.#endpoints = new RecordTable(db, {
      name: 'endpoints',
      schema: Endpoint,
      id: ({ id }) => id,
      unique: {
        place: ({ containerId, networkId }) => `${containerId} ${networkId}`,
        address: ({ networkId, ipAddress }) => (ipAddress === '' ? undefined : `${networkId} ${ipAddress}`),
        address6: ({ networkId, ipv6 }) => (ipv6 === undefined ? undefined : `${networkId} ${ipv6.ipAddress}`),
      },
      groups: { container: ({ containerId }) => containerId, network: ({ networkId }) => networkId },
    });
  }

  networks(): readonly NetworkRecord[] {
    return this.#networks.all();
  }

  /** The networks of a name, the oldest first: a name may be taken twice. */
  networksNamed(name: string): readonly NetworkRecord[] {
    return this.#networks.in('name', name);
  }

  network(id: string): NetworkRecord | undefined {
    return this.#networks.get(id);
  }

  saveNetwork(network: NetworkRecord): void {
    this.#networks.put(network);
  }

  deleteNetwork({ id }: NetworkRecord): void {
    this.#networks.delete(id);
  }

  endpoints(): readonly Endpoint[] {
    return this.#endpoints.all();
  }

  /** In the order of their joining; the same array as long as nothing changes. */
  endpointsOf(containerId: string): readonly Endpoint[] {
    return this.#endpoints.in('container', containerId);
  }

  /** Returns an identical array as long as nothing changes. */
  endpointsIn(networkId: string): readonly Endpoint[] {
    return this.#endpoints.in('network', networkId);
  }

  insertEndpoint(endpoint: Endpoint): void {
    this.#endpoints.insert(endpoint);
  }

  /** Replaces the record of an endpoint whose ports have moved. */
  saveEndpoint(endpoint: Endpoint): void {
    this.#endpoints.put(endpoint);
  }

  deleteEndpoint({ id }: Endpoint): void {
    this.#endpoints.delete(id);
  }
}
