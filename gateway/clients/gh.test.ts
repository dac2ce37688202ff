import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { suite, test } from 'node:test';

import {
  afterSeconds,
  FEW_POINTS,
  SMALL_QUOTA,
  type LimitedHost,
  startLimitedHost,
  TOKEN,
  untilSecond,
} from './limited-host.ts';

type Ran = { code: number; stdout: string; stderr: string };

/** `gh` with its `http_unix_socket`: plain HTTP to the gateway's socket, whatever host it thinks it asks. */
async function gh({ gateway: { folder }, socketPath }: LimitedHost, ...args: string[]): Promise<Ran> {
  await writeFile(join(folder, 'config.yml'), `http_unix_socket: ${socketPath}\n`);
  const env = { ...process.env, GH_CONFIG_DIR: folder, GH_TOKEN: TOKEN, GH_NO_UPDATE_NOTIFIER: '1', NO_COLOR: '1' };
  const { promise, resolve } = Promise.withResolvers<Ran>();
  execFile('gh', args, { env }, (error, stdout, stderr) => resolve({ code: Number(error?.code ?? 0), stdout, stderr }));
  return await promise;
}

/** The headers that `gh api --include` prints before the body. */
function header(stdout: string, name: string): string | undefined {
  return new RegExp(`^${name}: (.*?)\\r?$`, 'im').exec(stdout)?.[1];
}
suite('gh', { concurrency: 4 }, () => {
  test('gh prints the message of the primary limit, fails, and works after the reset', async () => {
    await using limited = await startLimitedHost(SMALL_QUOTA);

    const first = await gh(limited, 'api', 'user', '--jq', '.login');
    const refused = await gh(limited, 'api', '--include', 'user');
    await untilSecond(Number(header(refused.stdout, 'x-ratelimit-reset')));
    const after = await gh(limited, 'api', 'user', '--jq', '.login');

    assert.deepEqual(first, { code: 0, stdout: 'ada\n', stderr: '' });
    assert.deepEqual([refused.code, refused.stderr], [1, 'gh: API rate limit exceeded for user ID 42. (HTTP 403)\n']);
    assert.equal(header(refused.stdout, 'x-ratelimit-remaining'), '0');
    assert.equal(after.stdout, 'ada\n');
    assert.equal(limited.host.seen.length, 2);
  });

  test('gh prints the message of a secondary limit, fails, and works after retry-after', async () => {
    await using limited = await startLimitedHost(FEW_POINTS);

    await gh(limited, 'api', 'user');
    const refused = await gh(limited, 'api', '--include', 'user');
    await afterSeconds(Number(header(refused.stdout, 'retry-after')));
    const after = await gh(limited, 'api', 'user', '--jq', '.login');

    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /^gh: You have exceeded a secondary rate limit\..* \(HTTP 403\)\n$/);
    assert.equal(header(refused.stdout, 'x-ratelimit-remaining'), '4999');
    assert.equal(after.stdout, 'ada\n');
  });

  test('gh says why a query of GraphQL was refused', async () => {
    await using limited = await startLimitedHost({ secondary: { graphqlPoints: { limit: 1 } } });
    const query = ['api', 'graphql', '-f', 'query={ viewer { login } }', '--jq', '.data.viewer.login'];

    const first = await gh(limited, ...query);
    const refused = await gh(limited, ...query);

    assert.equal(first.stdout, 'ada\n');
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /secondary rate limit/);
  });
});
