import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, suite, test } from 'node:test';

import { eventually } from '@gantry/testing/eventually.ts';
import type { Page } from 'playwright-core';

import { goTo, PageTest } from './browser.ts';

suite('the files of a container in a browser', { concurrency: false }, () => {
  let browser: PageTest;
  let id: string;
  before(async () => {
    browser = await PageTest.start();
    const script = [
      'mkdir -p /data/inner && echo "hello <b>world</b>" >/data/note.txt && ln -s note.txt /data/link',
      'touch "/data/<img src=x onerror=alert(1)>" && echo deep >/data/inner/deep.txt && echo ready; sleep 1000',
    ];
    id = await browser.engine.run(['sh', '-c', script.join('; ')], {}, 'files');
    await eventually('the files are made', async () => (await browser.engine.output(id)).stdout.includes('ready'));
  });
  after(async () => await browser[Symbol.asyncDispose]());

  const openData = async (page: Page): Promise<void> => {
    await goTo(page, `containers/${id}/files`);
    await page.getByRole('button', { name: 'data/', exact: true }).click();
    await page.getByRole('button', { name: 'note.txt', exact: true }).waitFor();
  };

  test('folders are walked, a file and the target of a link are viewed, and names are text', async () => {
    await using open = await browser.open();
    const { page } = open;
    await openData(page);

    await page.getByRole('button', { name: '<img src=x onerror=alert(1)>' }).waitFor();
    await page.getByRole('button', { name: 'link', exact: true }).click();
    await page.getByText('hello <b>world</b>').waitFor();
    await page.getByRole('button', { name: 'Close' }).click();
    await page.getByRole('button', { name: 'inner/', exact: true }).click();
    await page.getByRole('button', { name: 'deep.txt' }).waitFor();
    assert.deepEqual(open.problems, []);
  });

  test('a viewed file and the archive of a folder are downloaded', async () => {
    await using open = await browser.open({ acceptDownloads: true });
    const { page } = open;
    await openData(page);
    const archive = page.waitForEvent('download');
    await page.getByRole('link', { name: 'Download inner as an archive' }).click();
    const tar = readFileSync(await (await archive).path());
    await page.getByRole('button', { name: 'note.txt', exact: true }).click();
    const file = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Download' }).click();

    const text = readFileSync(await (await file).path(), 'utf8');

    assert.equal(text, 'hello <b>world</b>\n');
    assert.ok(tar.includes('deep\n'));
  });

  test('chosen files and dropped files are uploaded to the open folder', async () => {
    await using open = await browser.open();
    const { page } = open;
    await openData(page);

    await page
      .locator('input[type=file]')
      .setInputFiles({ name: 'größe.txt', mimeType: 'text/plain', buffer: Buffer.from('chosen') });
    await page.getByRole('button', { name: 'größe.txt' }).waitFor();
    const dropped = await page.evaluateHandle(() => {
      const transfer = new DataTransfer();
      transfer.items.add(new File(['dropped'], 'dropped.txt'));
      return transfer;
    });
    await page.getByRole('region', { name: 'Files' }).dispatchEvent('drop', { dataTransfer: dropped });
    await page.getByRole('button', { name: 'dropped.txt' }).waitFor();

    const { raw } = await browser.engine.get(`/containers/${id}/archive?path=/data`);
    assert.ok(raw.includes('chosen') && raw.includes('dropped'));
  });

  test('a read-only page offers no upload', async () => {
    await using open = await browser.open({ readOnly: true });

    await openData(open.page);

    assert.equal(await open.page.locator('input[type=file]').count(), 0);
  });
});
