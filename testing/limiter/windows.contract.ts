import assert from 'node:assert/strict';
import { test } from 'node:test';

import { statusBody } from '@gantry/limiter/present.ts';
import type { RuleChanges } from '@gantry/limiter/rules.ts';

import { admitted, anonymous, refused, user, type Fixture } from './store.fixture.ts';

/** The windows of a caller: categories, sliding ones, the clock, and the counts as they are shown and forgiven. */
export function windowsContract(start: (changes?: RuleChanges) => Promise<Fixture>): void {
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

  for (const window of ['fixed', 'sliding'] as const) {
    test(`each window of a category must have room, and headers show the tightest one (${window})`, async () => {
      const also = [{ limit: 3, windowSeconds: 60 }];
      await using limits = await start({
        categories: { core: { limit: 'caller', windowSeconds: 3600, window, also } },
      });
      const caller = { ...user, limit: 5 };
      const fresh = await limits.use(caller, limits.status, 1);
      const last = await limits.use(caller, limits.get, 3);
      const minute = refused(await limits.admit(caller, limits.get));
      limits.clock.moveTo(minute.reset);
      const next = await limits.use(caller, limits.get, 1);
      const status = await limits.limiter.status(caller);
      await limits.use(caller, limits.get, 1);
      const hour = refused(await limits.admit(caller, limits.get));

      assert.deepEqual([fresh.limit, fresh.used], [3, 0]);
      assert.deepEqual([last.limit, last.used, last.remaining, last.windowSeconds], [3, 3, 0, 60]);
      assert.deepEqual([minute.refusedBy, minute.limit, minute.used, minute.remaining], ['primary', 3, 3, 0]);
      assert.ok(minute.retryAfterSeconds >= 60 && minute.retryAfterSeconds <= 66, `${minute.retryAfterSeconds} s`);
      assert.deepEqual([next.limit, next.used, next.remaining, next.windowSeconds], [5, 4, 1, 3600]);
      assert.deepEqual([status.core.limit, status.core.used, status.core.reset], [5, 4, next.reset]);
      assert.deepEqual([hour.limit, hour.remaining], [5, 0]);
      assert.ok(hour.retryAfterSeconds > 3500, `${hour.retryAfterSeconds} s`);
      assert.deepEqual(await limits.windows(user.key), {
        ...(await limits.windows(user.key)),
        core: 5,
        'primary core 60 s': 2,
      });
    });
  }

  test('the status stays the same while nothing happens', async () => {
    await using limits = await start({ categories: { search: { limit: 30, windowSeconds: 60 } } });
    await limits.use(user, limits.status, 1);
    const first = await limits.limiter.status(user);

    limits.clock.pass(1234);
    await limits.use(user, limits.status, 1);
    const later = await limits.limiter.status(user);

    assert.deepEqual(later, first);
    assert.deepEqual(statusBody(first).rate, { limit: 5000, used: 0, remaining: 5000, reset: 1_800_003_600 });
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
}
