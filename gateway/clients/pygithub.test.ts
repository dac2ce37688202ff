import assert from 'node:assert/strict';
import { join } from 'node:path';
import { suite, test } from 'node:test';

import { ClientProgram } from './client-program.ts';
import { afterSeconds, FEW_POINTS, SMALL_QUOTA, startLimitedHost, TOKEN, untilSecond } from './limited-host.ts';

async function pygithub(url: string, ...options: string[]): Promise<ClientProgram> {
  return await ClientProgram.start('/usr/bin/python3', [
    join(import.meta.dirname, 'pygithub.py'),
    url,
    TOKEN,
    ...options,
  ]);
}
suite('PyGithub', { concurrency: 4 }, () => {
  test('PyGithub raises RateLimitExceededException at the primary limit, knows the reset, and goes on after it', async () => {
    await using limited = await startLimitedHost(SMALL_QUOTA);
    await using client = await pygithub(limited.gateway.url);

    const first = await client.ask('user');
    const refused = await client.ask('user');
    await untilSecond(refused.reset);
    const after = await client.ask('user');

    assert.deepEqual([first.result, first.remaining, first.limit], ['ada', 0, 1]);
    assert.deepEqual([refused.error, refused.status, refused.remaining], ['RateLimitExceededException', 403, 0]);
    assert.equal(refused.message, 'API rate limit exceeded for user ID 42.');
    assert.equal(refused.retryAfterSeconds, 0); // the sign of a secondary limit is absent
    assert.equal(refused.reset, first.reset);
    assert.equal(after.result, 'ada');
    assert.equal(limited.host.seen.length, 2);
  });

  test('PyGithub raises RateLimitExceededException at a secondary limit, and goes on after retry-after', async () => {
    await using limited = await startLimitedHost(FEW_POINTS);
    await using client = await pygithub(limited.gateway.url);

    await client.ask('user');
    const refused = await client.ask('user');
    await afterSeconds(refused.retryAfterSeconds ?? 0);
    const after = await client.ask('user');

    assert.deepEqual([refused.error, refused.status, refused.remaining], ['RateLimitExceededException', 403, 4999]);
    assert.match(refused.message ?? '', /secondary rate limit.*Please wait a few minutes before you try again\.$/);
    assert.equal(after.result, 'ada');
  });

  test('PyGithub takes a 429 for no rate limit: 403 is the default for that', async () => {
    await using limited = await startLimitedHost({ ...SMALL_QUOTA, refusal: { status: 429 } });
    await using client = await pygithub(limited.gateway.url);

    await client.ask('user');
    const refused = await client.ask('user');

    assert.deepEqual([refused.error, refused.status], ['GithubException', 429]);
  });

  test("PyGithub with urllib3's Retry waits retry-after by itself", async () => {
    await using limited = await startLimitedHost(FEW_POINTS);
    await using client = await pygithub(limited.gateway.url, 'retry');

    await client.ask('user');
    const second = await client.ask('user');

    assert.equal(second.result, 'ada');
    assert.equal(limited.host.seen.length, 2);
  });

  test('PyGithub reads the rate limit status, which costs nothing', async () => {
    await using limited = await startLimitedHost({ limits: { user: 2 } });
    await using client = await pygithub(limited.gateway.url);

    await client.ask('user');
    const status = await client.ask('status');
    const second = await client.ask('user');

    assert.equal(status.result, 1);
    assert.equal(second.result, 'ada');
  });

  test('PyGithub creates issues until the limit of content is reached', async () => {
    await using limited = await startLimitedHost({ secondary: { contentPerMinute: { limit: 2 } } });
    await using client = await pygithub(limited.gateway.url);

    const created = [await client.ask('issue'), await client.ask('issue')];
    const refused = await client.ask('issue');
    const read = await client.ask('user');

    assert.deepEqual(
      created.map(({ result }) => result),
      [1, 2],
    );
    assert.equal(refused.error, 'RateLimitExceededException');
    assert.equal(read.result, 'ada');
  });
});
