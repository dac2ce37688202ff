import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';

import { PageTest } from './browser.ts';

suite('the page in a browser', { concurrency: false }, () => {
  let page: PageTest;
  let crashed: string;
  before(async () => {
    page = await PageTest.start();
    const { engine } = page;
    const labels = { 'com.docker.compose.project': 'shop', 'com.docker.compose.service': 'web' };
    await engine.run(['sleep', '1000'], { Labels: labels }, 'shop-web-1');
    crashed = await engine.run(['sh', '-c', 'echo connecting; echo "FATAL: no password" >&2; exit 3'], {}, 'worker');
    await engine.wait(crashed);
  });
  after(async () => await page[Symbol.asyncDispose]());

  test('the reason of a crash is two clicks from the invitation, with the last lines and the command', async () => {
    await using open = await page.open();
    await open.page.getByRole('link', { name: 'worker' }).click();

    await open.page.getByText('It ended by itself with an error (exit code 3)').waitFor();
    await open.page.getByText('FATAL: no password').first().waitFor();
    const command = open.page.getByText(/^docker run --detach --name worker busybox sh -c /);
    await command.waitFor();
    assert.deepEqual(open.problems, []);
  });
});
