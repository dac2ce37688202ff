import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';

import { PageTest } from './browser.ts';

/** Runs the daemon on a machine without a freezer of cgroups. */
const WITHOUT_FREEZER = ['unshare', '--mount', 'sh', '-c', 'umount /sys/fs/cgroup/freezer && exec "$@"', 'sh'];

suite('the page in a browser', { concurrency: false }, () => {
  let page: PageTest;
  let web: string;
  before(async () => {
    page = await PageTest.start({ within: WITHOUT_FREEZER });
    const { engine } = page;
    const labels = { 'com.docker.compose.project': 'shop', 'com.docker.compose.service': 'web' };
    web = await engine.run(['sleep', '1000'], { Labels: labels }, 'shop-web-1');
    const crashed = await engine.run(
      ['sh', '-c', 'echo connecting; echo "FATAL: no password" >&2; exit 3'],
      {},
      'worker',
    );
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

  test('Pause is refused with the reason where the machine has no freezer, and the container goes on', async () => {
    await using open = await page.open();
    await open.page.getByRole('link', { name: 'shop-web-1' }).click();
    await open.page.getByRole('button', { name: 'Pause' }).click();
    await open.page
      .locator('.notice.bad')
      .getByText(/in no cgroup that can be frozen/)
      .waitFor();

    const answer = await page.engine.post<{ message: string }>(`/containers/${web}/pause`);

    assert.equal(answer.status, 409);
    assert.match(answer.body.message, /^cannot pause container .* in no cgroup that can be frozen/);
    const { body } = await page.engine.get<{ State: { Status: string } }>(`/containers/${web}/json`);
    assert.equal(body.State.Status, 'running');
  });
});
