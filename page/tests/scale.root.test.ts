import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';

import { goTo, PageTest } from './browser.ts';

const CONTAINERS = 1000;
const AT_ONCE = 8;

suite('much at once in a browser', { concurrency: false }, () => {
  let browser: PageTest;
  before(async () => void (browser = await PageTest.start()));
  after(async () => await browser[Symbol.asyncDispose]());

  test('of 1,000 containers at most 100 rows exist, and a search finds each', async () => {
    const left = Array.from({ length: CONTAINERS }, (_, index) => `many-${String(index).padStart(4, '0')}`);
    const work = async (): Promise<void> => {
      for (let name = left.shift(); name !== undefined; name = left.shift()) {
        await browser.engine.create(['true'], { HostConfig: { NetworkMode: 'none' } }, name);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
    await using open = await browser.open();
    const { page } = open;
    await page.getByText(`0 of ${CONTAINERS} running`).waitFor();
    await page.getByRole('link', { name: 'many-0000' }).waitFor();
    const rows = await page.locator('tbody tr').count();

    await page.getByRole('searchbox', { name: 'Search containers' }).fill('many-0987');
    await page.getByRole('link', { name: 'many-0987' }).waitFor();
    await page.getByRole('link', { name: 'many-0000' }).waitFor({ state: 'detached' });

    assert.ok(rows <= 100, `${rows} rows`);
    assert.deepEqual(open.problems, []);
  });

  test('the log of a container that prints without a pause is shown, and the page still answers', async () => {
    const LogConfig = { Type: 'json-file', Config: { 'max-size': '10m', 'max-file': '1' } };
    const id = await browser.engine.run(['yes', 'a line of the loud one'], { HostConfig: { LogConfig } }, 'loud');
    await using open = await browser.open();
    const { page } = open;
    await goTo(page, `containers/${id}/logs`);
    await page.getByText('a line of the loud one').first().waitFor();

    await page.getByRole('link', { name: 'Details', exact: true }).click();
    await page.getByText('a line of the loud one').first().waitFor({ state: 'detached' });
    await browser.engine.post(`/containers/${id}/kill`);

    assert.deepEqual(open.problems, []);
  });
});
