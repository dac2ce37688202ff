import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';

test('the demo shows a limit from its refusal to the recovery, and ends by itself', async () => {
  // Another exit code than 0 rejects.
  const { stdout, stderr } = await promisify(execFile)(
    process.execPath,
    [join(import.meta.dirname, 'main.ts'), 'gateway'],
    {
      env: { ...process.env, GANTRY_DEMO_SECONDS: '12' },
    },
  );

  assert.equal(stderr, '');
  const shown = [
    /GET \/user → 200 {2}core: used 5 of 5, remaining 0/,
    /GET \/user → 403 {2}core: used 5 of 5, remaining 0/,
    /"message":"API rate limit exceeded for user ID 42\."/,
    /Octokit says: Retrying after \d+ seconds!/,
    /user:42 {3}primary {3}core/, // explain
    /points GET \/user {3}5/, // explain user:42
    /GET \/user → 200 {2}core: used 1 of 5, remaining 4/,
    /POST \/graphql → 403 .* retry-after \d/,
    /Octokit says: SecondaryRateLimit detected/,
    /requests_refused_total\{limit="primary"\} 1/,
    /the code host has seen 8 requests/,
    /What to try next:/,
  ];
  let from = 0;
  for (const pattern of shown) {
    const at = stdout.slice(from).search(pattern);
    assert.ok(at >= 0, `${String(pattern)} is missing in\n${stdout.slice(from)}`);
    from += at;
  }
});
