import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';

import { eventually } from '@gantry/testing/eventually.ts';

import { goTo, PageTest } from './browser.ts';

suite('shells in a browser', { concurrency: false }, () => {
  let browser: PageTest;
  let id: string;
  before(async () => {
    browser = await PageTest.start();
    id = await browser.engine.run(['sleep', '1000'], {}, 'shells');
  });
  after(async () => await browser[Symbol.asyncDispose]());

  const processes = async (): Promise<number> =>
    (await browser.engine.get<{ Processes: string[][] }>(`/containers/${id}/top`)).body.Processes.length;

  test('a shell answers, and ends with its tab and with its window', async () => {
    await using open = await browser.open();
    const { page } = open;
    await goTo(page, `containers/${id}/terminal`);
    await eventually('the first shell runs', async () => (await processes()) === 2);
    await page.locator('.xterm-helper-textarea').first().focus();
    await page.keyboard.type('echo $((40 + 2)) > /answer\n');
    await eventually('the shell has answered', async () => {
      const { raw, status } = await browser.engine.get(`/containers/${id}/archive?path=/answer`);
      return status === 200 && raw.includes('42\n');
    });
    await page.getByRole('button', { name: 'New shell' }).click();
    await eventually('the second shell runs', async () => (await processes()) === 3);

    await page.getByRole('button', { name: 'Close shell 2' }).click();
    await eventually('the second shell has ended', async () => (await processes()) === 2);
    await page.close();

    assert.ok(await eventually('the first shell has ended', async () => (await processes()) === 1));
    assert.deepEqual(open.problems, []);
  });
});
