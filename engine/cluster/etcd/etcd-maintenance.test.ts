import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';

import pino from 'pino';

import { systemClock, type Clock } from '../../lib/clock.ts';
import { Background } from '../../lib/concurrency/background.ts';
import { issue, newAuthority, newKey, revocationList } from '../ca/certificates.ts';
import { EtcdMaintenance } from './etcd-maintenance.ts';
import { etcdFlags, type EtcdSettings, type FirstStart } from './flags.ts';
import { Etcd, EtcdError } from './gateway.ts';
import { statusOf } from './maintenance-calls.ts';
import { listMembers, raftOf } from './members.ts';
import { EtcdProcess, findEtcd } from './process.ts';

const MEGABYTE = 1024 ** 2;
const RAFT = {
  snapshotInterval: 10_000,
  keepOldSnapshots: 0,
  logEntriesForSlowFollowers: 500,
  heartbeatTick: 1,
  electionTick: 10,
};
const LIMITS = { quotaBytes: 16 * MEGABYTE, spareBytes: 10 * MEGABYTE };
const never = async (): Promise<boolean> => await Promise.resolve(false);
const log = pino({ level: 'silent' });

/** A clock whose minute lasts for a tenth of a second. */
const fastClock: Clock = {
  now: () => systemClock.now(),
  after: (milliseconds, callback) => systemClock.after(milliseconds / 600, callback),
};

/** Members of one cluster on this machine. */
class TestMembers implements AsyncDisposable {
  readonly #folder = mkdtempSync(join(tmpdir(), 'gantry-etcd-'));
  readonly #parts = new AsyncDisposableStack();
  readonly #background = new Background(systemClock, log);
  /** Background work of the maintenance. */
  readonly background = new Background(fastClock, log);
  readonly members: Etcd[] = [];
  readonly processes: EtcdProcess[] = [];

  static async start(count: number, limits: { quotaBytes: number; history?: string }): Promise<TestMembers> {
    const all = new TestMembers();
    await using undo = new AsyncDisposableStack();
    undo.use(all);
    const ca = newAuthority('peers', systemClock.now());
    const ports = await freePorts(count);
    const names = ports.map((port) => ({ name: `m${port}`, peerUrl: `https://127.0.0.1:${port}` }));
    const first: FirstStart = { state: 'new', members: names };
    for (const port of ports) await all.#add(port, ca, { history: '1h', ...limits }, first);
    for (const etcd of all.members) await until('a raft leader', async () => (await raftOf(etcd)).leader !== '0');
    undo.move();
    return all;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.background[Symbol.asyncDispose]();
    await this.#background[Symbol.asyncDispose]();
    await this.#parts.disposeAsync();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  async #add(
    port: number,
    ca: ReturnType<typeof newAuthority>,
    limits: { quotaBytes: number; history: string },
    first: FirstStart,
  ): Promise<void> {
    const folder = (name: string): string => join(this.#folder, String(port), name);
    const place = { program: findEtcd(), data: folder('data'), peers: folder('peers'), run: folder('run') };
    mkdirSync(place.peers, { recursive: true });
    const { publicKey, privateKey } = newKey();
    const now = systemClock.now();
    const wanted = { subject: { name: `m${port}` }, publicKey, now, lifeSeconds: 3600, addresses: ['127.0.0.1'] };
    writeFileSync(join(place.peers, 'certificate.pem'), issue(ca, wanted));
    writeFileSync(join(place.peers, 'key.pem'), privateKey);
    writeFileSync(join(place.peers, 'ca.pem'), ca.certificate);
    writeFileSync(join(place.peers, 'crl.der'), revocationList(ca, [], now));
    const address = `127.0.0.1:${port}`;
    const settings: EtcdSettings = {
      name: `m${port}`,
      place,
      listen: address,
      advertise: address,
      raft: RAFT,
      ...limits,
    };
    const process = new EtcdProcess({ background: this.#background, clock: systemClock, log }, settings);
    this.#parts.defer(async () => await process.stop());
    await process.start(first);
    this.processes.push(process);
    this.members.push(this.#parts.use(new Etcd(process.socketPath, systemClock)));
  }
}

async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer().listen(0, '127.0.0.1'));
  await Promise.all(servers.map(async (server) => await once(server, 'listening')));
  const ports = servers.map((server) => (server.address() as { port: number }).port);
  await Promise.all(servers.map(async (server) => await once(server.close(), 'close')));
  return ports;
}

/** Waits until it is so; etcd may not answer meanwhile. */
async function until(what: string, look: () => Promise<boolean>): Promise<void> {
  const end = performance.now() + 120_000;
  for (;;) {
    try {
      if (await look()) return;
    } catch (error) {
      if (!(error instanceof EtcdError)) throw error;
    }
    if (performance.now() > end) throw new Error(`in vain: ${what}`);
    await sleep(100); // a look asks all members, and may write
  }
}

/** Puts one key again and again. `wrote` is told each revision. */
async function waste(etcd: Etcd, megabytes: number, wrote?: (revision: number) => void): Promise<number> {
  const value = 'x'.repeat(MEGABYTE);
  let revision = 0;
  for (let n = 0; n < megabytes; n += 1) {
    ({ revision } = await etcd.store({}, [{ put: 'waste', value }], 60_000));
    wrote?.(revision);
  }
  return revision;
}

test('etcd removes superseded revisions by itself', async () => {
  await using cluster = await TestMembers.start(1, { quotaBytes: 1024 * MEGABYTE, history: '1s' });
  const etcd = cluster.members[0]!;
  const revision = await waste(etcd, 3);

  await until('the old value is gone', async () => {
    try {
      await etcd.call('/v3/kv/range', { key: btoa('waste'), revision: String(revision - 1) });
      return false;
    } catch (error) {
      return error instanceof EtcdError && /compacted/.test(error.message);
    }
  });
  const { kv } = await etcd.get('waste');
  assert.equal(kv?.value.length, MEGABYTE);
});

test('a file with much waste is rewritten, one member at a time, and never by the one that leads raft', async () => {
  await using cluster = await TestMembers.start(3, { quotaBytes: 1024 * MEGABYTE, history: '1s' });
  const [one] = cluster.members;
  // Keys that exist: on a slow machine a compaction would free superseded values before the next ones are written.
  const keys = Array.from({ length: 30 }, (_, n) => `wasted${n}`);
  for (const put of keys) await one!.store({}, [{ put, value: 'x'.repeat(MEGABYTE) }], 60_000);
  const sizes = async (): Promise<number[]> =>
    await Promise.all(cluster.members.map(async (etcd) => (await statusOf(etcd)).bytes));
  await until('all have it', async () => (await sizes()).every((bytes) => bytes > 20 * MEGABYTE));
  await one!.store(
    {},
    keys.map((key) => ({ delete: key })),
    60_000,
  );
  const revision = await waste(one!, 1);
  let [inside, most] = [0, 0];
  const leading: boolean[] = [];
  const maintenances = cluster.members.map((etcd) => {
    const inTurn = async (work: () => Promise<void>): Promise<boolean> => {
      if (inside > 0) return false;
      inside += 1;
      most = Math.max(most, inside);
      try {
        await work();
        await until('it answers', async () => {
          const { self, leader } = await raftOf(etcd);
          return leading.push(self === leader) > 0;
        });
        return true;
      } finally {
        inside -= 1;
      }
    };
    const settings = { ...LIMITS, revision: () => revision, inTurn };
    return new EtcdMaintenance({ background: cluster.background, log, etcd }, settings);
  });

  await until('all files are small', async () => {
    await one!.store({}, [{ put: 'other', value: '1' }], 5000); // pages of old values are free after the next commit
    // A file that was rewritten before the last compaction may keep the spare bytes, and twice of what it uses.
    return inside === 0 && (await sizes()).every((bytes) => bytes < LIMITS.spareBytes + 4 * MEGABYTE);
  });
  for (const maintenance of maintenances) maintenance[Symbol.dispose]();

  assert.equal(most, 1);
  assert.ok(leading.length >= 3, leading.join());
  assert.ok(!leading.includes(true), leading.join());
  assert.equal((await one!.get('waste')).kv?.value.length, MEGABYTE);
});

test('full members make room, and can be written to again', async () => {
  await using cluster = await TestMembers.start(3, { quotaBytes: 16 * MEGABYTE });
  await fillAndWriteAgain(cluster, cluster.members);
});

test('the one that leads raft makes room also where the next one is out of service', async () => {
  await using cluster = await TestMembers.start(3, { quotaBytes: 16 * MEGABYTE });
  const { leader } = await raftOf(cluster.members[0]!);
  const next = (await listMembers(cluster.members[0]!)).find(({ id }) => id !== leader);
  const ids = await Promise.all(cluster.members.map(async (etcd) => (await raftOf(etcd)).self));
  const lost = ids.indexOf(next!.id);
  await cluster.processes[lost]!.stop();
  const left = cluster.members.toSpliced(lost, 1);

  await fillAndWriteAgain(cluster, left);

  assert.equal((await raftOf(left[0]!)).leader, leader);
});

async function fillAndWriteAgain(cluster: TestMembers, members: readonly Etcd[]): Promise<void> {
  const etcd = members[0]!;
  let last = 0;
  const wrote = (revision: number): void => void (last = revision);
  await assert.rejects(waste(etcd, 40, wrote), { message: /database space exceeded/ });
  const full = last;
  const maintenances = members.map((member) => {
    const settings = { ...LIMITS, revision: () => last, inTurn: never };
    return new EtcdMaintenance({ background: cluster.background, log, etcd: member }, settings);
  });

  // A member that was nearly full may be full once more.
  await until('as much as half of the quota is written', async () => (await waste(etcd, 8, wrote)) > full);
  for (const maintenance of maintenances) maintenance[Symbol.dispose]();
}

test('the quota is a flag', () => {
  const place = { program: '', data: '', peers: '', run: '' };

  const flags = etcdFlags({ name: '', place, listen: '', advertise: '', raft: RAFT, quotaBytes: 1024, history: '1m' });

  assert.ok(flags.includes('--quota-backend-bytes=1024'));
});
