import assert from 'node:assert/strict';
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';

import type { Inspect } from '@gantry/engine/containers/schema.ts';
import { TarWriter } from '@gantry/testing/archives/tar-writer.ts';
import { imageArchive } from '@gantry/testing/busybox-image.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

function change(engine: TestEngine, sql: string, ...values: string[]): void {
  const db = new DatabaseSync(join(engine.dataRoot, 'gantry.db'));
  db.prepare(sql).run(...values);
  db.close();
}

test('records that cannot be read are named in the log, and stop nothing else', async () => {
  await using engine = await TestEngine.start();
  const archive = imageArchive(new TarWriter().add({ name: 'f', content: 'x' }).end(), ['other:1']);
  await engine.post('/images/load?quiet=1', archive);
  const { body: image } = await engine.get<{ Id: string }>('/images/other:1/json');
  const good = await engine.run(['sleep', '600']);
  const volumes = { Volumes: { '/anonymous': {} } };
  const cut = await engine.run(['sleep', '600'], volumes);
  const shapeless = await engine.create(['true']);
  const strange = await engine.create(['true']);
  const { Pid } = (await engine.get<Inspect>(`/containers/${cut}/json`)).body.State;
  const { Mounts } = (await engine.get<Inspect>(`/containers/${cut}/json`)).body;
  const records = new Map([
    [cut, ''],
    [shapeless, ''],
    [strange, ''],
  ]);
  await engine.kill('SIGTERM');
  const db = new DatabaseSync(join(engine.dataRoot, 'gantry.db'));
  for (const id of records.keys()) {
    records.set(id, String(db.prepare('SELECT record FROM containers WHERE id = ?').get(id)?.record));
  }
  db.close();
  change(engine, 'UPDATE containers SET record = substr(record, 1, 100) WHERE id = ?', cut);
  change(engine, "UPDATE containers SET record = '{}' WHERE id = ?", shapeless);
  change(engine, `UPDATE containers SET record = json_set(record, '$.state.status', 'flying') WHERE id = ?`, strange);
  change(engine, `UPDATE images SET record = json_set(record, '$.json', '[') WHERE id = ?`, image.Id);

  await engine.startAgain();

  const { body: listed } = await engine.get<{ Id: string }[]>('/containers/json?all=1');
  assert.deepEqual(
    listed.map(({ Id }) => Id),
    [good],
  );
  for (const id of [cut, shapeless, strange, image.Id]) {
    const lines = engine.log.split('\n').filter((line) => line.includes('a record cannot be read'));
    assert.equal(lines.filter((line) => line.includes(id)).length, 1, id);
  }
  process.kill(Pid, 0); // nobody has ended it
  assert.ok(existsSync(Mounts[0]!.Source), 'nor removed its volume');
  assert.ok(existsSync(join(engine.dataRoot, 'writable', cut)));
  // Loading it again heals an image.
  assert.equal((await engine.post('/images/load?quiet=1', archive)).status, 200);
  assert.equal((await engine.get('/images/other:1/json')).status, 200);

  await engine.kill('SIGTERM');
  for (const [id, record] of records) change(engine, 'UPDATE containers SET record = ? WHERE id = ?', record, id);
  await engine.startAgain();
  assert.equal((await engine.get<Inspect>(`/containers/${cut}/json`)).body.State.Pid, Pid);
});

test('things that may belong to an unreadable record are removed by nobody', async () => {
  await using engine = await TestEngine.start();
  const archive = imageArchive(new TarWriter().add({ name: 'f', content: 'x' }).end(), ['other:1']);
  await engine.post('/images/load?quiet=1', archive);
  const lender = await engine.create(['true'], { Volumes: { '/anonymous': {} } });
  const borrower = await engine.create(['true'], { HostConfig: { VolumesFrom: [lender] } });
  const { Mounts } = (await engine.get<Inspect>(`/containers/${lender}/json`)).body;
  const ownerless = await engine.create(['true']);
  await engine.post('/volumes/create', { Name: 'data' });
  const precious = join(engine.dataRoot, 'volumes/data/_data/precious');
  writeFileSync(precious, 'precious');
  const { body: image } = await engine.get<{ RootFS: { Layers: string[] } }>('/images/other:1/json');
  const layer = image.RootFS.Layers[0]!;
  const places = ['layers', 'writable', 'blobs/sha256', 'blobs/skeletons', 'volumes'];
  const listed = (): string[][] => places.map((place) => readdirSync(join(engine.dataRoot, place)));
  await engine.kill('SIGTERM');
  const before = listed();
  const records: [string, string][] = [
    ['containers', borrower],
    ['layer_owners', ownerless],
    ['layers', layer],
    ['volumes', 'data'],
  ];
  for (const [table, id] of records) change(engine, `UPDATE ${table} SET record = 'x' || record WHERE id = ?`, id);

  await engine.startAgain();

  assert.deepEqual(listed(), before);
  assert.ok(!existsSync(join(engine.dataRoot, 'lost-and-found')));
  for (const [table, id] of records) {
    const lines = engine.log
      .split('\n')
      .filter((line) => line.includes('a record cannot be read') && line.includes(id));
    assert.equal(lines.filter((line) => line.includes(table)).length, 1, table);
  }
  assert.equal((await engine.post('/volumes/create', { Name: 'data' })).status, 409);
  assert.equal((await engine.delete(`/containers/${lender}?v=1`)).status, 204);
  assert.ok(existsSync(Mounts[0]!.Source));
  assert.equal((await engine.delete('/images/other:1')).status, 200);

  await engine.kill('SIGTERM');
  for (const [table, id] of records) change(engine, `UPDATE ${table} SET record = substr(record, 2) WHERE id = ?`, id);
  await engine.startAgain();
  assert.ok(existsSync(precious));
  assert.ok(existsSync(Mounts[0]!.Source));
  for (const id of [borrower, ownerless]) assert.equal((await engine.post(`/containers/${id}/start`)).status, 204);
});
