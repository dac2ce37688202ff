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

  test('a shell knows the size of its window; its text is copied, and text is pasted into it', async () => {
    await using open = await browser.open({ permissions: ['clipboard-read', 'clipboard-write'] });
    const { page } = open;
    const answer = async (): Promise<string> =>
      (await browser.engine.get(`/containers/${id}/archive?path=/size`)).raw.toString('latin1');
    await goTo(page, `containers/${id}/terminal`);
    await page.getByText('/ #').first().waitFor();
    await page.locator('.xterm-helper-textarea').focus();
    await page.keyboard.type('stty size > /size\n');
    const sizeOf = (text: string): string | undefined => /^(\d+ \d+)\n/m.exec(text.slice(512))?.[1];
    await eventually('the shell has a size', async () => sizeOf(await answer()) !== undefined);
    const wide = sizeOf(await answer());

    await page.setViewportSize({ width: 700, height: 500 });
    await eventually('the shell has another size', async () => {
      await page.keyboard.type('stty size > /size\n');
      const size = sizeOf(await answer());
      return size !== undefined && size !== wide;
    });
    await page.keyboard.type('clear; echo copied-word\n');
    const word = page.locator('.xterm-rows > div', { hasText: /^copied-word/ });
    await word.waitFor();
    await word.dblclick({ position: { x: 20, y: 8 }, force: true });
    await page.keyboard.press('Control+Shift+C');
    const copied = await page.evaluate(async () => await navigator.clipboard.readText());
    await page.evaluate(async () => await navigator.clipboard.writeText('echo from-the-clipboard > /pasted'));
    await page.keyboard.press('Control+Shift+V');
    await page.getByText('from-the-clipboard').first().waitFor();
    await page.keyboard.press('Enter');
    await eventually('the pasted command has run', async () => {
      const { raw, status } = await browser.engine.get(`/containers/${id}/archive?path=/pasted`);
      return status === 200 && raw.includes('from-the-clipboard\n');
    });

    assert.equal(copied, 'copied-word');
    assert.deepEqual(open.problems, []);
  });
});
