import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';

import { ContainerStore } from '@gantry/engine/containers/store.ts';
import { Database } from '@gantry/engine/db/database.ts';
import { ExecStore } from '@gantry/engine/exec/store.ts';
import { ImageStore } from '@gantry/engine/images/store.ts';
import { Blobs } from '@gantry/engine/layers/blobs.ts';
import { Layers } from '@gantry/engine/layers/layers.ts';
import { NetworkStore } from '@gantry/engine/networks/store.ts';
import { VolumeStore } from '@gantry/engine/volumes/store.ts';

type Row = Record<string, string | number | null>;

const OLD = readFileSync(join(import.meta.dirname, 'old-database.sql'), 'utf8');

/** A data root with the old database, changed by `sql`, as a daemon of today opens it. */
class OldRoot implements AsyncDisposable {
  readonly #directory = mkdtempSync(join(tmpdir(), 'gantry-old-'));
  readonly #parts = new AsyncDisposableStack();
  readonly old: DatabaseSync;
  readonly db: Database;
  readonly containers: ContainerStore;
  readonly execs: ExecStore;
  readonly images: ImageStore;
  readonly layers: Layers;
  readonly networks: NetworkStore;
  readonly volumes: VolumeStore;

  constructor(sql = '') {
    this.old = new DatabaseSync(':memory:');
    const file = join(this.#directory, 'gantry.db');
    for (const db of [this.old, new DatabaseSync(file)]) db.exec(OLD + sql);
    this.db = this.#parts.use(new Database(file));
    const log = { warn: (): never => assert.fail('nothing is to be removed') };
    this.layers = this.#parts.use(new Layers(this.db, new Blobs(this.#directory), this.#directory, log));
    this.images = new ImageStore(this.db, this.layers);
    this.containers = new ContainerStore(this.db);
    this.execs = new ExecStore(this.db);
    this.networks = new NetworkStore(this.db);
    this.volumes = new VolumeStore(this.db);
  }

  rows(table: string): Row[] {
    const statement = this.old.prepare(`SELECT * FROM ${table} ORDER BY 1`);
    statement.setReadBigInts(true);
    return statement
      .all()
      .map((row) => JSON.parse(JSON.stringify(row, (_, v) => (typeof v === 'bigint' ? String(v) : v))));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.old.close();
    await this.#parts.disposeAsync();
    rmSync(this.#directory, { recursive: true });
  }
}

/** As it is stored. */
function plain(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value));
}

type OldRecord = { mounts?: { type: string }[]; networkingConfig?: object; hostConfig?: { NetworkMode: string } };

function records(rows: readonly Row[]): OldRecord[] {
  return rows.map(({ record }) => JSON.parse(String(record)) as OldRecord);
}

/** Volumes had one driver, which no record named. */
function withDriver(mount: { type: string }): object {
  return mount.type === 'volume' ? { ...mount, driver: 'local' } : mount;
}

/** A container was in the network of its mode. */
function inNow({ networkingConfig: _none, ...container }: OldRecord): object {
  const { NetworkMode } = container.hostConfig!;
  const attachment = { ipam: null, links: null, aliases: null, macAddress: '', networkId: '' };
  const attachments = { [NetworkMode === 'default' ? 'bridge' : NetworkMode]: attachment };
  return { ...container, attachments, mounts: container.mounts?.map(withDriver) };
}

function byId<T>(list: readonly T[], idOf: (item: T) => string): T[] {
  return list.toSorted((a, b) => (idOf(a) < idOf(b) ? -1 : 1));
}

test('all of a database of earlier daemons is there, to the last field', async () => {
  await using root = new OldRoot();

  assert.deepEqual(root.db.badRecords.all(), []);
  assert.deepEqual(plain(byId(root.containers.all(), ({ id }) => id)), records(root.rows('containers')).map(inNow));
  assert.deepEqual(plain(byId(root.execs.all(), ({ id }) => id)), records(root.rows('execs')));
  assert.deepEqual(
    byId(root.layers.all(), ({ chainId }) => chainId).map((layer) => [
      layer.chainId,
      layer.diffId,
      layer.parent ?? null,
      layer.folder,
      layer.blob,
      String(layer.sizeBytes),
    ]),
    root.rows('layers').map((row) => Object.values(row)),
  );
  assert.deepEqual(
    byId(root.volumes.all(), ({ name }) => name).map((volume) => ({
      name: volume.name,
      driver: volume.driver,
      created_ns: String(volume.createdAt.epochNanoseconds),
      labels: JSON.stringify(volume.labels),
      anonymous: volume.anonymous ? '1' : '0',
    })),
    root.rows('volumes').map((row) => ({ ...row, driver: 'local' })),
  );
  assert.deepEqual(
    byId(root.networks.networks(), ({ id }) => id).map((network) => ({
      id: network.id,
      name: network.name,
      driver: network.driver,
      created_ns: String(network.createdAt.epochNanoseconds),
      bridge: network.bridge ?? null,
      subnet: network.subnet ?? null,
      gateway: network.gateway ?? null,
    })),
    root.rows('networks'),
  );
  assert.deepEqual(
    byId(root.networks.endpoints(), ({ id }) => id).map((endpoint) => ({
      id: endpoint.id,
      container_id: endpoint.containerId,
      network_id: endpoint.networkId,
      sandbox_id: endpoint.sandboxId,
      link: endpoint.link,
      ip: endpoint.ipAddress === '' ? null : endpoint.ipAddress,
      prefix_length: String(endpoint.prefixLength),
      gateway: endpoint.gateway,
      mac: endpoint.macAddress,
      ports: JSON.stringify(endpoint.ports),
    })),
    root.rows('endpoints'),
  );
});

test('images keep their configuration to the byte, their names and their layers', async () => {
  await using root = new OldRoot();

  const images = root.rows('images');
  assert.equal(images.length, 2);
  for (const { id, json, tagged_ns: taggedNs } of images) {
    assert.equal(root.images.jsonOf(String(id)), json);
    assert.equal(String(root.images.taggedAt(String(id))?.epochNanoseconds), taggedNs);
    assert.equal(root.layers.chain(root.images.get(String(id))!.layers.at(-1)).length, 1);
  }
  assert.deepEqual(root.images.tagsOf(root.images.find('busybox').id), ['busybox:latest', 'example.org:5000/tools:2']);
  assert.deepEqual(root.images.tagsOf(root.images.find('other:1').id), ['other:1']);
  for (const { owner } of root.rows('layer_owners')) assert.ok(root.layers.isOwner(String(owner)));
});

test('order, times and relations are as before', async () => {
  await using root = new OldRoot();

  const names = root.containers.all().map(({ name, state }) => [name, state.status]);
  assert.deepEqual(names, [
    ['web', 'running'],
    ['ended', 'exited'],
    ['new', 'created'],
    ['paused', 'paused'],
    ['broken', 'created'],
    ['again', 'restarting'],
  ]);
  const { id, state, createdAt } = root.containers.find('web');
  assert.ok(createdAt instanceof Temporal.Instant);
  assert.ok('startedAt' in state && state.startedAt instanceof Temporal.Instant);
  assert.equal(root.networks.endpointsOf(id)[0]?.networkName, 'bridge');
  assert.equal(root.networks.networksNamed('bridge')[0]?.bridge, 'gantry0');
  assert.equal(root.execs.runningIn(id).length, 2);
  assert.equal(root.layers.overlay(id).lower.length, 2);
});

test('a record that could not be read before is set aside by itself, and kept as it was', async () => {
  await using root = new OldRoot(`
    UPDATE containers SET record = '{"id":"cut' WHERE name = 'ended';
    UPDATE volumes SET labels = 'a=b' WHERE name = 'data';
    UPDATE volumes SET created_ns = 'May' WHERE name <> 'data';
    UPDATE endpoints SET ports = '[80' WHERE ip IS NOT NULL;
    UPDATE images SET json = '[' WHERE id = (SELECT image FROM image_references WHERE tag = '1');`);

  const bad = root.db.badRecords.all().map(({ table, id }) => [table, id]);
  assert.equal(bad.length, 5);
  const kept = bad.map(
    ([table, id]) => root.db.sql.prepare(`SELECT record FROM ${table} WHERE id = ?`).get(id!)?.record,
  );
  for (const text of ['{"id":"cut', 'a=b', 'May', '[80', '"["']) {
    assert.equal(kept.filter((record) => String(record).includes(text)).length, 1, text);
  }
  assert.equal(root.containers.all().length, 5);
  assert.equal(root.networks.networks().length, 3);
});
