import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, suite, test } from 'node:test';
import { promisify } from 'node:util';

import { ClientProgram } from './client-program.ts';
import { afterSeconds, FEW_POINTS, SMALL_QUOTA, startLimitedHost, TOKEN, untilSecond } from './limited-host.ts';

const root = dirname(dirname(import.meta.dirname));
const folder = await mkdtemp(join(tmpdir(), 'gantry-go-github-'));
after(async () => await rm(folder, { recursive: true }));
const program = join(folder, 'go-github');
await build();

/** From Debian's packages, without the network. What the compiler keeps makes the second build quick. */
async function build(): Promise<void> {
  const env = {
    ...process.env,
    GO111MODULE: 'off',
    GOPATH: '/usr/share/gocode',
    GOCACHE: join(root, 'build/go-cache'),
    CGO_ENABLED: '0',
  };
  await promisify(execFile)('go', ['build', '-o', program, join(import.meta.dirname, 'go-github.go')], { env });
}

async function goGithub(url: string): Promise<ClientProgram> {
  return await ClientProgram.start(program, [url, TOKEN]);
}
suite('go-github', { concurrency: 4 }, () => {
  test('go-github returns a RateLimitError at the primary limit, and sends nothing until the reset', async () => {
    await using limited = await startLimitedHost(SMALL_QUOTA);
    await using client = await goGithub(limited.gateway.url);
    const first = await client.ask('user');
    // The first answer already says that nothing is left: the gateway refuses another client's request.
    await using other = await goGithub(limited.gateway.url);

    const refused = await other.ask('user');
    const untold = await client.ask('user');
    await untilSecond(refused.reset);
    const after = await other.ask('user');

    assert.deepEqual([first.result, first.remaining, first.limit], ['ada', 0, 1]);
    assert.deepEqual([refused.error, refused.message], ['RateLimitError', 'API rate limit exceeded for user ID 42.']);
    assert.equal(refused.reset, first.reset);
    assert.equal(untold.error, 'RateLimitError');
    assert.match(untold.message ?? '', /not making remote request/);
    assert.equal(after.result, 'ada');
    assert.equal(limited.host.seen.length, 2);
  });

  test('go-github returns an AbuseRateLimitError with RetryAfter at a secondary limit, and goes on after it', async () => {
    await using limited = await startLimitedHost(FEW_POINTS);
    await using client = await goGithub(limited.gateway.url);

    await client.ask('user');
    const refused = await client.ask('user');
    await afterSeconds(refused.retryAfterSeconds ?? 0);
    const after = await client.ask('user');

    assert.deepEqual([refused.error, refused.remaining], ['AbuseRateLimitError', 4999]);
    assert.ok((refused.retryAfterSeconds ?? 0) >= 1, `RetryAfter is ${refused.retryAfterSeconds}`);
    assert.equal(after.result, 'ada');
  });

  test('go-github takes a 429 for no rate limit: 403 is the default for that', async () => {
    await using limited = await startLimitedHost({ ...FEW_POINTS, refusal: { status: 429 } });
    await using client = await goGithub(limited.gateway.url);

    await client.ask('user');
    const refused = await client.ask('user');

    assert.equal(refused.error, 'ErrorResponse');
  });

  test('go-github keeps a search that is limited apart from the rest', async () => {
    await using limited = await startLimitedHost({ categories: { search: { limit: 1, windowSeconds: 60 } } });
    await using client = await goGithub(limited.gateway.url);
    await using other = await goGithub(limited.gateway.url);

    const first = await client.ask('search');
    const refused = await other.ask('search');
    const user = await other.ask('user');

    assert.equal(first.result, 'found');
    assert.deepEqual([refused.error, refused.limit], ['RateLimitError', 1]);
    assert.deepEqual([user.result, user.limit], ['ada', 5000]);
  });

  test('go-github creates issues until the limit of content is reached', async () => {
    await using limited = await startLimitedHost({ secondary: { contentPerMinute: { limit: 1 } } });
    await using client = await goGithub(limited.gateway.url);

    const created = await client.ask('issue');
    const refused = await client.ask('issue');

    assert.equal(created.result, 'found by go-github');
    assert.equal(refused.error, 'AbuseRateLimitError');
  });
});
