import assert from 'node:assert/strict';
import { suite, test } from 'node:test';

import { Octokit } from 'octokit';

import { FEW_POINTS, SMALL_QUOTA, startLimitedHost, TOKEN } from './limited-host.ts';

type Exchange = {
  status: number;
  remaining: string | null;
  resetSeconds: number;
  retryAfterSeconds: number;
  sentMs: number;
  answeredMs: number;
};

/** Octokit as its users get it, with the plugins it brings; what it sends and what it logs is kept. */
function watchedOctokit(baseUrl: string) {
  const exchanges: Exchange[] = [];
  const said: string[] = [];
  const refused = Promise.withResolvers<void>();
  const say = (line: string): void => void said.push(line);
  const watched = async (url: string, options: RequestInit): Promise<Response> => {
    const sentMs = Date.now();
    const response = await fetch(url, options);
    const { status, headers } = response;
    exchanges.push({
      status,
      remaining: headers.get('x-ratelimit-remaining'),
      resetSeconds: Number(headers.get('x-ratelimit-reset')),
      retryAfterSeconds: Number(headers.get('retry-after')),
      sentMs,
      answeredMs: Date.now(),
    });
    if (status >= 400) refused.resolve();
    return response;
  };
  const octokit = new Octokit({
    auth: TOKEN,
    baseUrl,
    request: { fetch: watched },
    log: { debug: () => undefined, info: say, warn: say, error: say },
  });
  return { octokit, exchanges, said, refused: refused.promise };
}

suite('Octokit', { concurrency: 4 }, () => {
  for (const method of ['GET', 'HEAD'] as const) {
    test(`Octokit takes an exhausted quota for the primary limit and waits for its reset (${method})`, async () => {
      await using limited = await startLimitedHost(SMALL_QUOTA);
      const { octokit, exchanges, said } = watchedOctokit(limited.gateway.url);
      await octokit.request(`${method} /user`);

      const { status } = await octokit.request(`${method} /user`);

      const [, refused, repeated] = exchanges as [Exchange, Exchange, Exchange];
      assert.equal(status, 200);
      assert.deepEqual(
        exchanges.map((exchange) => exchange.status),
        [200, 403, 200],
      );
      assert.equal(said[0], `Request quota exhausted for request ${method} /user`);
      assert.equal(refused.remaining, '0');
      assert.ok(repeated.sentMs >= refused.resetSeconds * 1000, 'it came before the reset');
      assert.equal(limited.host.seen.length, 2);
    });

    test(`Octokit takes a refusal by points for the secondary limit and waits retry-after (${method})`, async () => {
      await using limited = await startLimitedHost(FEW_POINTS);
      const { octokit, exchanges, said } = watchedOctokit(limited.gateway.url);
      await octokit.request(`${method} /user`);

      const { status } = await octokit.request(`${method} /user`);

      const [, refused, repeated] = exchanges as [Exchange, Exchange, Exchange];
      assert.equal(status, 200);
      assert.deepEqual(
        exchanges.map((exchange) => exchange.status),
        [200, 403, 200],
      );
      assert.deepEqual(said, [
        `SecondaryRateLimit detected for request ${method} /user`,
        `Retrying after ${refused.retryAfterSeconds} seconds!`,
      ]);
      assert.equal(refused.remaining, '4999'); // nothing was spent, and the primary limit is not the reason
      assert.ok(repeated.sentMs - refused.answeredMs >= refused.retryAfterSeconds * 1000 - 50, 'it came too early');
    });
  }

  test('Octokit waits retry-after when GraphQL is refused', async () => {
    await using limited = await startLimitedHost(FEW_POINTS);
    const { octokit, exchanges, said } = watchedOctokit(limited.gateway.url);
    await octokit.graphql('{ viewer { login } }');

    const answer = await octokit.graphql('{ viewer { login } }');

    const [, refused] = exchanges as [Exchange, Exchange];
    assert.deepEqual(answer, { viewer: { login: 'ada' } });
    assert.deepEqual(said, [
      'SecondaryRateLimit detected for request POST /graphql',
      `Retrying after ${refused.retryAfterSeconds} seconds!`,
    ]);
  });

  test('Octokit waits retry-after when too much content was created', async () => {
    await using limited = await startLimitedHost({ secondary: { contentPerMinute: { limit: 1 }, windowSeconds: 5 } });
    const { octokit, exchanges, said } = watchedOctokit(limited.gateway.url);
    const issue = { owner: 'ada', repo: 'engine', title: 'found by Octokit' };
    await octokit.rest.issues.create(issue);

    const { data } = await octokit.rest.issues.create(issue);

    assert.equal(data.number, 2);
    assert.deepEqual(
      exchanges.map((exchange) => exchange.status),
      [201, 403, 201],
    );
    assert.equal(said[0], 'SecondaryRateLimit detected for request POST /repos/{owner}/{repo}/issues');
  });

  test('Octokit waits retry-after when too many of its requests are under way', async () => {
    await using limited = await startLimitedHost({ secondary: { concurrent: { limit: 1 } } });
    const { octokit, exchanges, said, refused } = watchedOctokit(limited.gateway.url);
    const release = limited.host.hold();
    const first = octokit.request('GET /user');
    await limited.host.saw(1);

    const second = octokit.request('GET /repos/{owner}/{repo}', { owner: 'ada', repo: 'engine' });
    await Promise.race([second, refused]);
    release();

    assert.deepEqual([(await first).status, (await second).status], [200, 200]);
    assert.equal(exchanges[0]?.status, 403);
    assert.deepEqual(said, [
      'SecondaryRateLimit detected for request GET /repos/{owner}/{repo}',
      'Retrying after 1 seconds!',
    ]);
  });

  for (const [name, settings] of [
    ['primary', SMALL_QUOTA],
    ['secondary', FEW_POINTS],
  ] as const) {
    test(`Octokit repeats a 429 of the ${name} limit after one second: 403 is the default for that`, async () => {
      await using limited = await startLimitedHost({ ...settings, refusal: { status: 429 } });
      const { octokit, exchanges, said } = watchedOctokit(limited.gateway.url);
      await octokit.request('GET /user');

      await octokit.request('GET /user');

      const [, refused, repeated] = exchanges as [Exchange, Exchange, Exchange];
      assert.deepEqual(
        exchanges.map((exchange) => exchange.status),
        [200, 429, 429, 200],
      );
      assert.ok(repeated.sentMs < refused.resetSeconds * 1000, 'it has waited after all');
      assert.deepEqual(said, []);
    });
  }

  test('Octokit without the retry plugin waits for the reset of a 429 too', async () => {
    await using limited = await startLimitedHost({ ...SMALL_QUOTA, refusal: { status: 429 } });
    const { octokit, exchanges, said } = watchedOctokit(limited.gateway.url);
    await octokit.request('GET /user');

    await octokit.request('GET /user', { request: { retries: 0 } });

    assert.deepEqual(
      exchanges.map((exchange) => exchange.status),
      [200, 429, 200],
    );
    assert.equal(said[0], 'Request quota exhausted for request GET /user');
  });
});
