import { test } from 'node:test';

import { sha256, TestGateway } from '@gantry/testing/gateway/test-gateway.ts';
import { TestUpstream } from '@gantry/testing/gateway/test-upstream.ts';

import { launchBrowser } from './browser.ts';
import { assertUsable } from './checks.ts';

test("the gateway's page has no serious finding of axe-core and fits 390 px, in both colour schemes", async () => {
  await using upstream = await TestUpstream.start();
  await using gateway = await TestGateway.start({
    upstream: upstream.url,
    limits: { user: 3 },
    identities: { users: { octo: {} }, tokens: [{ sha256: sha256('of-octo'), user: 'octo' }] },
    admin: { page: '127.0.0.1:0' },
  });
  for (let n = 0; n < 5; n += 1) await gateway.request('/user', { token: 'of-octo' });
  const { port } = (await gateway.logged('the page is served'))['page'] as { port: number };
  await using browser = await launchBrowser('/usr/bin/chromium');
  const page = await browser.newPage();

  await page.goto(`http://127.0.0.1:${port}/`);
  await page.getByText('user:octo').first().waitFor();

  await assertUsable(page, 'gateway');
});
