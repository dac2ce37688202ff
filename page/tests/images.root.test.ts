import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';

import { Registries } from '@gantry/testing/registries/registries.ts';

import { goTo, PageTest } from './browser.ts';

const BUILDFILE = 'FROM busybox\nCOPY note.txt /note.txt\nRUN cat /note.txt\n';

suite('images in a browser', { concurrency: false }, () => {
  let browser: PageTest;
  let registries: Registries;
  before(async () => {
    browser = await PageTest.start();
    registries = await Registries.start(browser.engine.netns);
    await registries.registry(5000);
  });
  after(async () => {
    await registries[Symbol.asyncDispose]();
    await browser[Symbol.asyncDispose]();
  });

  test('dropped files are built with their output shown, and the image is tagged and removed', async () => {
    await using open = await browser.open();
    const { page } = open;
    await goTo(page, 'images');
    await page.getByRole('textbox', { name: 'Name of the built image' }).fill('made:1');
    const dropped = await page.evaluateHandle((buildfile) => {
      const transfer = new DataTransfer();
      transfer.items.add(new File([buildfile], 'Dockerfile'));
      transfer.items.add(new File(['<b>from the page</b>\n'], 'note.txt'));
      return transfer;
    }, BUILDFILE);

    await page.getByRole('region', { name: 'Build' }).dispatchEvent('drop', { dataTransfer: dropped });

    await page.getByText('<b>from the page</b>').waitFor();
    await page.getByText('Built made:1').waitFor();
    await page.getByRole('link', { name: 'made:1' }).click();
    await page.getByText('COPY').first().waitFor();
    await page.getByRole('textbox', { name: 'New tag' }).fill('made:2');
    await page.getByRole('button', { name: 'Tag', exact: true }).click();
    await page.getByText('Tagged made:2').waitFor();
    await page.getByText('made:1, made:2').waitFor();
    await page.getByRole('button', { name: 'Remove' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
    await page.getByText(/^Removed made:1/).waitFor();

    assert.equal((await browser.engine.get('/images/made:1/json')).status, 404);
    assert.deepEqual(open.problems, []);
  });

  test('a build that fails says why', async () => {
    await using open = await browser.open();
    const { page } = open;
    await goTo(page, 'images');

    const [buffer, mimeType] = [Buffer.from('FROM busybox\nRUN exit 7\n'), 'text/plain'];
    await page
      .getByRole('region', { name: 'Build' })
      .locator('input[type=file]')
      .setInputFiles([{ name: 'Dockerfile', mimeType, buffer }]);

    await page.getByText(/returned a non-zero code: 7/).waitFor();
  });

  test('a push that no registry answers says why', async () => {
    await browser.engine.post('/images/busybox/tag?repo=127.0.0.1:9/nobody/busybox&tag=1');
    await using open = await browser.open();
    const { page } = open;
    await goTo(page, 'images');
    await page.getByRole('link', { name: /nobody/ }).click();

    await page.getByRole('combobox', { name: 'Tag to push' }).selectOption('127.0.0.1:9/nobody/busybox:1');
    await page.getByRole('button', { name: 'Push' }).click();

    await page.locator('.notice.bad').waitFor();
    assert.deepEqual(open.problems, []);
  });

  test('a tag is pushed, and pulled again after its removal', async () => {
    const name = '127.0.0.1:5000/shop/web:7';
    await browser.engine.post('/images/busybox/tag?repo=127.0.0.1:5000/shop/web&tag=7');
    await using open = await browser.open();
    const { page } = open;
    await goTo(page, 'images');
    await page
      .getByRole('link', { name: /busybox/ })
      .first()
      .click();
    await page.getByRole('combobox', { name: 'Tag to push' }).selectOption(name);
    await page.getByRole('button', { name: 'Push' }).click();
    await page.getByText(`Pushed ${name}`).waitFor();
    const pushed = await registries.request('GET', 'http://127.0.0.1:5000/v2/shop/web/tags/list');
    await browser.engine.delete(`/images/${name}`);
    await goTo(page, 'images');

    await page.getByRole('textbox', { name: 'Image to pull' }).fill(name);
    await page.getByRole('button', { name: 'Pull' }).click();
    await page.getByText(`Pulled ${name}`).waitFor();

    assert.deepEqual(JSON.parse(pushed.body.toString()), { name: 'shop/web', tags: ['7'] });
    assert.equal((await browser.engine.get(`/images/${name}/json`)).status, 200);
    assert.deepEqual(open.problems, []);
  });

  test('images without a container go after a list of them, and those with one stay', async () => {
    const { engine } = browser;
    await engine.create(['true'], {}, 'keeper');
    const { body } = await engine.post<{ Id: string }>('/commit?container=keeper&repo=unused&tag=1&comment=x');
    await using open = await browser.open();
    const { page } = open;
    await goTo(page, 'images');
    await page.getByRole('link', { name: 'unused:1' }).waitFor();

    await page.getByRole('button', { name: 'Clean up' }).click();
    await page.getByRole('dialog').getByText('unused:1').waitFor();
    await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
    await page.getByText(/^Freed /).waitFor();
    await page.getByRole('link', { name: 'unused:1' }).waitFor({ state: 'detached' });

    assert.equal((await engine.get(`/images/${body.Id}/json`)).status, 404);
    assert.equal((await engine.get('/images/busybox/json')).status, 200);
    assert.deepEqual(open.problems, []);
  });

  test('a read-only page offers no build, pull or push', async () => {
    await using open = await browser.open({ readOnly: true });
    await goTo(open.page, 'images');
    await open.page
      .getByRole('link', { name: /busybox/ })
      .first()
      .waitFor();

    assert.equal(await open.page.getByRole('button', { name: /Pull|Push|Clean up/ }).count(), 0);
    assert.equal(await open.page.locator('input[type=file]').count(), 0);
  });
});
