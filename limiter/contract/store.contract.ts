import assert from 'node:assert/strict';
import { suite, test } from 'node:test';

import type { LimitStore } from '../limit-store.ts';
import { limitRules, type RuleChanges } from '../rules.ts';
import { admitted, anonymous, Fixture, refused, TestClock, user } from './store.fixture.ts';

/** Tests the promises of every store. `open` gives an empty one that lives by `now`. */
export function storeContract(name: string, open: (now: () => number) => Promise<LimitStore>): void {
  suite(name, () => {
    const start = async (changes: RuleChanges = {}): Promise<Fixture> => {
      const clock = new TestClock();
      const store = await open(clock.now);
      return new Fixture(clock, store, limitRules(changes));
    };

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

    test('a category has its own window, and requests of one that is off count in core', async () => {
      await using limits = await start({
        categories: {
          search: { limit: 2, windowSeconds: 30, anonymousLimit: 1 },
          scim: { limit: 'off', windowSeconds: 30 },
        },
      });
      const scim = limits.limiter.endpoint({ name: 'GET /scim', category: 'scim' });
      const search = limits.limiter.endpoint({ name: 'GET /search/issues', category: 'search' });
      const code = limits.limiter.endpoint({ name: 'GET /search/code', category: 'code_search' });
      await limits.use(user, search, 2);
      const own = await limits.use({ ...user, limit: 3 }, code, 3);
      const off = await limits.use({ ...user, limit: 3 }, scim, 2);

      const spent = refused(await limits.admit(user, search));
      const core = admitted(await limits.admit({ ...user, limit: 3 }, limits.get));
      const offSpent = refused(await limits.admit({ ...user, limit: 3 }, scim));
      const nobody = await limits.use(anonymous, search, 1);
      const status = await limits.limiter.status({ ...user, limit: 3 });

      assert.deepEqual([spent.resource, spent.limit, spent.retryAfterSeconds], ['search', 2, 31]);
      assert.deepEqual([own.resource, own.used, own.limit, own.remaining], ['code_search', 3, 3, 0]);
      assert.deepEqual([off.resource, off.used, off.limit, off.remaining], ['core', 2, 3, 1]);
      assert.deepEqual([core.used, offSpent.refusedBy, offSpent.resource], [3, 'primary', 'core']);
      assert.deepEqual(status.scim, status.core);
      assert.equal(nobody.limit, 1);
    });

    test('one counter of a user is compared with the limit of the app in use', async () => {
      await using limits = await start();
      const throughApp = { ...user, limit: 4 };
      await limits.use({ ...user, limit: 2 }, limits.get, 2);

      const personal = await limits.admit({ ...user, limit: 2 }, limits.get);
      const app = admitted(await limits.admit(throughApp, limits.get));
      const again = refused(await limits.admit({ ...user, limit: 2 }, limits.get));

      assert.equal(personal.allowed, false);
      assert.deepEqual([app.used, app.remaining], [3, 1]);
      assert.deepEqual([again.limit, again.used, again.remaining], [2, 2, 0]);
    });

    test('a request without primary cost passes when the quota is used up, and opens no window', async () => {
      await using limits = await start();
      const fresh = await limits.use(user, limits.status, 1);
      const { reset } = await limits.use(anonymous, limits.get, 60);

      const status = admitted(await limits.admit(anonymous, limits.status));

      assert.deepEqual([fresh.used, fresh.reset], [0, 1_800_003_600]);
      assert.equal((await limits.windows(user.key))['core'], undefined);
      assert.deepEqual([status.used, status.remaining, status.reset], [60, 0, reset]);
    });

    test('the status stays the same while nothing happens', async () => {
      await using limits = await start({ categories: { search: { limit: 30, windowSeconds: 60 } } });
      await limits.use(user, limits.status, 1);
      const first = await limits.limiter.status(user);

      limits.clock.pass(1234);
      await limits.use(user, limits.status, 1);
      const later = await limits.limiter.status(user);

      assert.deepEqual(later, first);
      assert.deepEqual(first.core, { limit: 5000, used: 0, remaining: 5000, reset: 1_800_003_600 });
      assert.equal(first.search.limit, 30);
      assert.equal(first.scim.limit, 5000);
    });

    test('a limit in shadow mode reports and does not refuse', async () => {
      await using limits = await start({ shadow: ['primary', 'points'], restPoints: { limit: 1, windowSeconds: 60 } });
      const poor = { ...user, limit: 1 };
      const first = admitted(await limits.admit(poor, limits.get));

      const second = admitted(await limits.admit(poor, limits.get));

      assert.deepEqual(first.shadowed, []);
      assert.deepEqual(second.shadowed, ['primary', 'points']);
      assert.deepEqual([second.limit, second.used, second.remaining], [1, 1, 0]);
      assert.equal(limits.limiter.counts.shadowed.points, 1);
    });

    test('a sliding window never admits more than the limit within its length, and forgets a step at a time', async () => {
      const sliding = { windowSeconds: 60, window: 'sliding' } as const;
      await using limits = await start({ restPoints: { limit: 10, ...sliding } });
      limits.clock.moveTo(1_800_000_004);
      await limits.use(user, limits.get, 6);
      limits.clock.moveTo(1_800_000_055);
      await limits.use(user, limits.get, 4);

      const full = refused(await limits.admit(user, limits.get));
      limits.clock.moveTo(1_800_000_064.999);
      const before = refused(await limits.admit(user, limits.get));
      limits.clock.moveTo(1_800_000_065);
      const freed = await limits.use(user, limits.get, 6);
      const again = refused(await limits.admit(user, limits.get));

      assert.deepEqual([full.refusedBy, full.retryAfterSeconds], ['points', 10]);
      assert.equal(before.retryAfterSeconds, 1);
      assert.equal(freed.used, 16);
      assert.equal(again.retryAfterSeconds, 55, 'the four of the second 55 count for a minute and their step of 5 s');
    });

    test('the reset of a sliding quota is the time when its first part comes back, and a caller that waits for it is admitted', async () => {
      await using limits = await start({
        categories: { core: { limit: 'caller', windowSeconds: 3600, window: 'sliding' } },
      });
      limits.clock.moveTo(1_800_000_000);
      const first = await limits.use(anonymous, limits.get, 40);
      limits.clock.moveTo(1_800_001_000);
      const last = await limits.use(anonymous, limits.get, 20);

      const refusal = refused(await limits.admit(anonymous, limits.get));
      const poorer = refused(await limits.admit({ ...anonymous, limit: 15 }, limits.get));
      const status = await limits.limiter.status(anonymous);
      limits.clock.moveTo(refusal.reset);
      const after = admitted(await limits.admit(anonymous, limits.get));

      assert.deepEqual([first.reset, last.used, last.remaining], [1_800_003_900, 60, 0]);
      assert.deepEqual([refusal.kind, refusal.used, refusal.reset], ['primary', 60, 1_800_003_900]);
      assert.equal(poorer.reset, 1_800_004_800, 'a smaller limit has room only when more has come back');
      assert.deepEqual([status.core.used, status.core.reset], [60, 1_800_003_900]);
      assert.deepEqual([after.used, after.remaining, after.reset], [21, 39, 1_800_004_800]);
    });

    test('CPU time and content may slide too', async () => {
      await using limits = await start({
        cpu: { totalSeconds: 90, graphqlSeconds: 60, windowSeconds: 60, window: 'sliding' },
        contentPerMinute: { limit: 2, windowSeconds: 60, window: 'sliding' },
      });
      limits.clock.moveTo(1_800_000_004);
      await limits.use(user, limits.create, 2);
      admitted(await limits.admit(user, limits.graphql)).end(50);
      await limits.windows(user.key); // so that the time is charged before the clock moves on
      limits.clock.pass(30);
      admitted(await limits.admit(user, limits.graphql)).end(45.5);

      const cpu = refused(await limits.admit(user, limits.get));
      const content = refused(await limits.admit({ ...anonymous, key: user.key }, limits.create));
      const windows = await limits.windows(user.key);
      limits.clock.pass(31);
      const later = await limits.admit(user, limits.create);

      assert.deepEqual([cpu.refusedBy, cpu.retryAfterSeconds], ['cpu', 31]);
      assert.deepEqual([content.refusedBy, windows['content-minute']], ['cpu', 2]);
      assert.deepEqual([windows['cpu'], windows['graphql-cpu']], [95_500, 95_500]);
      assert.equal(later.allowed, true);
    });

    test('a limit in shadow mode for one endpoint reports there and refuses elsewhere', async () => {
      await using limits = await start({ restPoints: { limit: 1, windowSeconds: 60 } });
      const trial = limits.limiter.endpoint({ name: 'GET /trial', shadow: ['points'] });
      await limits.use(user, trial, 1);
      await limits.use(user, limits.get, 1);

      const shadowed = admitted(await limits.admit(user, trial));
      const elsewhere = refused(await limits.admit(user, limits.get));
      const other = refused(await limits.admit({ ...user, limit: 3 }, trial));

      assert.deepEqual(shadowed.shadowed, ['points']);
      assert.equal(elsewhere.refusedBy, 'points');
      assert.equal(other.refusedBy, 'primary');
    });

    test('a clock that was set back does not make a window longer', async () => {
      await using limits = await start();
      await limits.use(anonymous, limits.get, 60);

      limits.clock.pass(-7200);
      const decision = admitted(await limits.admit(anonymous, limits.get));

      assert.equal(decision.reset, Math.ceil(limits.clock.seconds) + 3600);
    });

    test('two hundred requests at once admit exactly the limit', async () => {
      await using limits = await start();

      const decisions = await Promise.all(Array.from({ length: 200 }, () => limits.admit(anonymous, limits.get)));

      assert.equal(decisions.filter(({ allowed }) => allowed).length, 60);
    });

    test('a limit of nothing refuses the first request and remembers nobody', async () => {
      await using limits = await start();

      const refusal = refused(await limits.admit({ ...user, limit: 0 }, limits.get));

      assert.deepEqual([refusal.refusedBy, refusal.used, refusal.retryAfterSeconds], ['primary', 0, 3601]);
      assert.deepEqual((await limits.limiter.explainCaller(user.key)).windows, []);
    });

    test('a forgiven caller has spent nothing, and pending requests still count', async () => {
      await using limits = await start({ concurrent: { limit: 1, retrySeconds: 1 } });
      await limits.use(user, limits.create, 2);
      const underWay = admitted(await limits.admit(user, limits.create));

      await limits.limiter.forgive(user.key);
      const during = await limits.limiter.explainCaller(user.key);
      const refusal = refused(await limits.admit(user, limits.create));
      underWay.end(0);
      const again = admitted(await limits.admit(user, limits.create));

      assert.deepEqual([during.windows, during.underWay, refusal.refusedBy, again.used], [[], 1, 'concurrent', 1]);
    });

    test("a caller's use can be seen, and all callers can be listed", async () => {
      await using limits = await start();
      admitted(await limits.admit(user, limits.create)).end(1.5);
      admitted(await limits.admit({ ...user, key: 'user:{odd}*' }, limits.get));

      const windows = await limits.windows(user.key);
      const callers = await Array.fromAsync(limits.limiter.callers());

      assert.deepEqual(windows, {
        core: 1,
        'content-minute': 1,
        'content-hour': 1,
        cpu: 1500,
        'graphql-cpu': 0,
        'points POST /issues': 5,
      });
      assert.deepEqual(Object.fromEntries(callers.map(({ key, underWay }) => [key, underWay])), {
        'user:42': 0,
        'user:{odd}*': 1,
      });
    });

    test('many endpoints of one caller are counted without mixing them up', async () => {
      await using limits = await start({ restPoints: { limit: 2, windowSeconds: 60 } });
      const endpoints = Array.from({ length: 50 }, (_, n) => limits.limiter.endpoint({ name: `GET /many/${n}` }));

      const visitAll = async (): Promise<boolean[]> => {
        const allowed: boolean[] = [];
        for (const endpoint of endpoints) {
          using decision = await limits.admit(user, endpoint);
          allowed.push(decision.allowed);
        }
        return allowed;
      };

      const decisions = [...(await visitAll()), ...(await visitAll()), ...(await visitAll())];
      limits.clock.pass(61);
      const afterwards = await visitAll();

      assert.deepEqual(decisions, [...Array<boolean>(100).fill(true), ...Array<boolean>(50).fill(false)]);
      assert.ok(afterwards.every(Boolean));
    });
  });
}
