import assert from 'node:assert/strict';
import { test } from 'node:test';

import type { RuleChanges } from '@gantry/limiter/rules.ts';
import type { Decision } from '@gantry/limiter/types.ts';

import { admitted, anonymous, refused, user, type Fixture } from './store.fixture.ts';

/** The limits of a decision: which of them refuses, and how long. */
export function limitsContract(start: (changes?: RuleChanges) => Promise<Fixture>): void {
  test('the limit is admitted and the next request is refused until the reset', async () => {
    await using limits = await start();

    const first = admitted(await limits.admit(anonymous, limits.get));
    for (let n = 2; n <= 60; n += 1) admitted(await limits.admit(anonymous, limits.get)).end(0);
    const refusal = refused(await limits.admit(anonymous, limits.get));

    assert.deepEqual([first.limit, first.used, first.remaining, first.resource], [60, 1, 59, 'core']);
    assert.equal(refusal.kind, 'primary');
    assert.deepEqual([refusal.limit, refusal.used, refusal.remaining, refusal.reset], [60, 60, 0, first.reset]);
    assert.equal(refusal.retryAfterSeconds, 3601);
  });

  test('a window ends at a whole second, at which the next request is admitted', async () => {
    await using limits = await start();
    const { reset } = await limits.use(anonymous, limits.get, 60);

    limits.clock.moveTo(reset - 0.001);
    const before = await limits.admit(anonymous, limits.get);
    limits.clock.moveTo(reset);
    const after = admitted(await limits.admit(anonymous, limits.get));

    assert.equal(reset, Math.ceil(1_800_000_000.3) + 3600);
    assert.equal(before.allowed, false);
    assert.equal(refused(before).retryAfterSeconds, 1);
    assert.deepEqual([after.used, after.reset], [1, reset + 3600]);
  });

  test('several requests decided as one have room together or spend nothing', async () => {
    await using limits = await start();
    const group = async (cost: number): Promise<Decision> =>
      await limits.limiter.admit(anonymous, limits.get, cost, cost);

    const first = admitted(await group(25));
    const tooMany = refused(await group(36));
    const decisions = await Promise.all(Array.from({ length: 20 }, async () => await group(10)));
    const allowed = decisions.filter((decision) => decision.allowed);
    for (const decision of allowed) decision.giveBack();
    const all = admitted(await group(35));

    assert.deepEqual([first.used, first.remaining], [25, 35]);
    assert.deepEqual([tooMany.refusedBy, tooMany.used, tooMany.remaining], ['primary', 25, 35]);
    assert.equal(allowed.length, 3);
    assert.deepEqual([all.used, all.remaining], [60, 0]);
  });

  test('a request that a secondary limit refuses spends no primary quota', async () => {
    await using limits = await start({ restPoints: { limit: 3, windowSeconds: 60 } });
    await limits.use(user, limits.get, 3);

    const refusal = refused(await limits.admit(user, limits.get));
    const elsewhere = admitted(await limits.admit(user, limits.list));

    assert.deepEqual([refusal.kind, refusal.refusedBy, refusal.used], ['secondary', 'points', 3]);
    assert.equal(refusal.remaining, 4997);
    assert.equal(elsewhere.used, 4);
  });

  test('a request that the primary limit refuses spends no points and no content', async () => {
    await using limits = await start();
    await limits.use({ ...user, limit: 2 }, limits.create, 2);

    refused(await limits.admit({ ...user, limit: 2 }, limits.create));

    const windows = await limits.windows(user.key);
    assert.equal(windows['points POST /issues'], 10);
    assert.equal(windows['content-minute'], 2);
  });

  test('points are counted for each endpoint by itself', async () => {
    await using limits = await start({ restPoints: { limit: 10, windowSeconds: 60 } });
    await limits.use(user, limits.create, 2);

    const spent = refused(await limits.admit(user, limits.create));
    const other = await limits.admit(user, limits.get);

    assert.equal(spent.retryAfterSeconds, 61);
    assert.equal(other.allowed, true);
  });

  test('a mutation may be refused where a query still passes', async () => {
    await using limits = await start({ graphqlPoints: { limit: 7, windowSeconds: 60 } });
    await limits.use(user, limits.graphql, 1, 5);

    const mutation = await limits.admit(user, limits.graphql, 5);
    const query = await limits.admit(user, limits.graphql, 1);

    assert.equal(refused(mutation).refusedBy, 'points');
    assert.equal(query.allowed, true);
  });

  test('REST and GraphQL share the concurrent requests, and an end makes room', async () => {
    await using limits = await start({ concurrent: { limit: 2, retrySeconds: 3 } });
    const rest = admitted(await limits.admit(user, limits.get));
    admitted(await limits.admit(user, limits.graphql));

    const third = refused(await limits.admit(user, limits.list));
    rest.end(0);
    rest.end(0);
    const afterOne = await limits.admit(user, limits.list);
    const fourth = await limits.admit(user, limits.list);

    assert.deepEqual([third.refusedBy, third.retryAfterSeconds], ['concurrent', 3]);
    assert.deepEqual([afterOne.allowed, fourth.allowed], [true, false]);
  });

  test('CPU time is charged at the end and refuses until its window is over', async () => {
    await using limits = await start();
    const slow = admitted(await limits.admit(user, limits.get));
    slow.end(90);

    const refusal = refused(await limits.admit(user, limits.get));
    limits.clock.pass(61);
    const later = await limits.admit(user, limits.get);

    assert.deepEqual([refusal.refusedBy, refusal.retryAfterSeconds], ['cpu', 61]);
    assert.equal(later.allowed, true);
  });

  test('CPU time is charged while a request goes on, and the end settles the rest', async () => {
    await using limits = await start();
    const slow = admitted(await limits.admit(user, limits.get));
    slow.begin();
    limits.clock.pass(30);
    limits.limiter.chargeRunning();
    const during = await limits.windows(user.key);
    slow.end(31);
    const afterwards = await limits.windows(user.key);
    const stopped = admitted(await limits.admit(user, limits.get));
    stopped.begin();
    stopped.stop(60);
    limits.clock.pass(20);
    limits.limiter.chargeRunning();

    const refusal = refused(await limits.admit(user, limits.get));
    stopped.end(60);

    assert.deepEqual([during['cpu'], afterwards['cpu']], [30_000, 31_000]);
    assert.equal(refusal.refusedBy, 'cpu');
    assert.equal((await limits.windows(user.key))['cpu'], 91_000);
  });

  test('a request that is given back has spent nothing, and points may be added to one', async () => {
    await using limits = await start();
    await limits.use(user, limits.create, 1);
    const before = await limits.windows(user.key);
    const mistaken = admitted(await limits.admit(user, limits.create));
    mistaken.giveBack();
    const afterwards = await limits.windows(user.key);
    const query = admitted(await limits.admit(user, limits.graphql, 1));
    query.chargePoints(4);
    query.end(0);

    const { underWay } = await limits.limiter.explainCaller(user.key);

    assert.deepEqual(afterwards, before);
    assert.equal(underWay, 0);
    assert.equal((await limits.windows(user.key))['points GraphQL'], 5);
  });

  for (const window of ['fixed', 'sliding'] as const) {
    test(`the cost of a request changes in the window where it counts, and in no later one (${window})`, async () => {
      await using limits = await start({
        categories: { core: { limit: 'caller', windowSeconds: 60, window } },
        costsChange: true,
      });
      const [free, costly, late] = [
        admitted(await limits.admit(anonymous, limits.get)),
        admitted(await limits.admit(anonymous, limits.get)),
        admitted(await limits.admit(anonymous, limits.get)),
      ];
      const before = [free.used, costly.used, late.used];
      free.setCost(0);
      free.setCost(0);
      costly.setCost(10);
      const during = admitted(await limits.admit(anonymous, limits.get));
      limits.clock.pass(120);
      const next = await limits.use(anonymous, limits.get, 2);
      late.setCost(0);
      costly.setCost(50);
      free.end(0);
      free.setCost(30);
      const afterwards = admitted(await limits.admit(anonymous, limits.get));

      assert.deepEqual(before, [1, 2, 3]);
      assert.deepEqual([free.used, free.remaining, costly.used, costly.remaining], [0, 60, 51, 9]);
      assert.deepEqual([during.used, next.used, afterwards.used], [12, 2, 3]);
    });
  }

  test('a cost that is no whole number is refused, and costs nothing of an endpoint without a primary limit', async () => {
    await using limits = await start({ costsChange: true });
    const request = admitted(await limits.admit(anonymous, limits.get));
    const status = admitted(await limits.admit(anonymous, limits.status));

    for (const cost of [-1, 0.5, NaN, Infinity, 1e10]) assert.throws(() => request.setCost(cost), RangeError);
    status.setCost(5);

    assert.deepEqual([request.used, status.used], [1, 1]);
    assert.equal((await limits.windows(anonymous.key))['core'], 1);
  });

  test('the time between a pause and the next beginning is not charged', async () => {
    await using limits = await start();
    const request = admitted(await limits.admit(user, limits.get));
    request.begin();
    limits.clock.pass(10);
    request.pause();
    limits.clock.pass(20);
    limits.limiter.chargeRunning();
    const paused = await limits.windows(user.key);
    request.begin();
    limits.clock.pass(5);

    request.end();

    assert.deepEqual([paused['cpu'] ?? 0, (await limits.windows(user.key))['cpu']], [0, 15_000]);
  });

  test("GraphQL's share of CPU time refuses GraphQL only", async () => {
    await using limits = await start();
    admitted(await limits.admit(user, limits.graphql)).end(60);

    const graphql = await limits.admit(user, limits.graphql);
    const rest = await limits.admit(user, limits.get);

    assert.equal(refused(graphql).refusedBy, 'graphql-cpu');
    assert.equal(rest.allowed, true);
  });

  test('content is limited per minute and per hour, and content that was created elsewhere counts', async () => {
    await using limits = await start({
      contentPerMinute: { limit: 3, windowSeconds: 60 },
      contentPerHour: { limit: 5, windowSeconds: 3600 },
    });
    await limits.use(user, limits.create, 1);
    await limits.limiter.chargeContent(user, 2);

    const minute = refused(await limits.admit(user, limits.create));
    limits.clock.pass(61);
    await limits.use(user, limits.create, 2);
    const hour = refused(await limits.admit(user, limits.create));

    assert.deepEqual([minute.refusedBy, minute.retryAfterSeconds], ['content-minute', 61]);
    assert.equal(hour.refusedBy, 'content-hour');
    assert.equal(hour.retryAfterSeconds, 3540);
  });

  test("an endpoint's own limit of content leaves other endpoints alone", async () => {
    await using limits = await start();
    const invite = limits.limiter.endpoint({ name: 'POST /invitations', content: { perMinute: 2, perHour: 3 } });
    await limits.use(user, invite, 2);

    const minute = refused(await limits.admit(user, invite));
    const other = await limits.admit(user, limits.create);
    limits.clock.pass(61);
    await limits.use(user, invite, 1);
    const hour = refused(await limits.admit(user, invite));

    assert.deepEqual([minute.refusedBy, hour.refusedBy], ['content-minute', 'content-hour']);
    assert.equal(other.allowed, true);
  });

  test('the primary limit is named before others, and among others the one that lasts longest', async () => {
    await using limits = await start({
      concurrent: { limit: 3, retrySeconds: 1 },
      restPoints: { limit: 15, windowSeconds: 60 },
      contentPerHour: { limit: 3, windowSeconds: 3600 },
    });
    for (let n = 0; n < 3; n += 1) admitted(await limits.admit(user, limits.create));

    const longest = refused(await limits.admit(user, limits.create));
    const primary = refused(await limits.admit({ ...user, limit: 3 }, limits.create));

    assert.equal(longest.refusedBy, 'content-hour');
    assert.equal(primary.refusedBy, 'primary');
  });
}
