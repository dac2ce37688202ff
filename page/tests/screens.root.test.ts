import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';

import { TarWriter } from '@gantry/testing/archives/tar-writer.ts';
import { eventually } from '@gantry/testing/eventually.ts';
import type { Page } from 'playwright-core';

import { goTo, PageTest } from './browser.ts';
import { assertUsable } from './checks.ts';
import { makeScene, type Scene } from './scene.ts';

/** A name that has no place to break. */
const LONG = 'very'.repeat(30);

suite('all screens in a browser', { concurrency: false }, () => {
  let browser: PageTest;
  let scene: Scene;
  let long: string;
  before(async () => {
    browser = await PageTest.start();
    scene = await makeScene(browser.engine);
    await browser.engine.post(`/images/busybox/tag?repo=${LONG}&tag=1`);
    long = await browser.engine.run(['sh', '-c', `echo ERROR ${LONG}; exit 1`], { Labels: { [LONG]: LONG } }, LONG);
  });
  after(async () => await browser[Symbol.asyncDispose]());

  test('each screen has no serious finding of axe-core and fits 390 px, in both colour schemes', async (t) => {
    await using open = await browser.open();
    const { page } = open;
    const { web, worker } = scene;
    const screens: readonly (readonly [place: string, shown: () => ReturnType<Page['locator']>])[] = [
      ['containers', () => page.getByRole('row', { name: /shop-web-1/ }).getByText('%')],
      [`containers/${web}`, () => page.locator('.chart canvas').first()],
      [`containers/${worker}`, () => page.getByText('FATAL').first()],
      [`containers/${long}`, () => page.getByText(`ERROR ${LONG}`).first()],
      [`containers/${long}/details`, () => page.getByRole('heading', { name: 'Labels' })],
      [`containers/${web}/logs`, () => page.getByText('no connection to the bank').first()],
      [`containers/${web}/terminal`, () => page.locator('.xterm-helper-textarea')],
      [`containers/${web}/files`, () => page.getByRole('button', { name: 'bin/', exact: true })],
      [`containers/${web}/details`, () => page.getByRole('heading', { name: 'Health checks' })],
      ['images', () => page.getByRole('link', { name: /busybox/ }).first()],
      ['images/busybox', () => page.getByRole('heading', { name: 'Steps' })],
      ['volumes', () => page.getByRole('link', { name: 'shop_data' })],
      ['volumes/shop_data', () => page.getByRole('button', { name: 'rows' })],
      ['networks', () => page.getByRole('region', { name: 'Map of networks' })],
      ['events', () => page.getByRole('link', { name: 'shop-web-1' }).first()],
      ['system', () => page.getByRole('cell', { name: 'Caches of builds', exact: true })],
      ['cluster', () => page.getByText('not a manager')],
    ];
    for (const [place, shown] of screens) {
      await t.test(place.replace(web, 'web').replace(worker, 'worker').replace(long, 'long'), async () => {
        await page.setViewportSize({ width: 1280, height: 800 });
        await goTo(page, place);
        await shown().waitFor();
        await assertUsable(page, place);
      });
    }
    assert.deepEqual(open.problems, []);
  });

  test('keys go to screens, to the search, and through the rows', async () => {
    await using open = await browser.open();
    const { page } = open;
    await page.getByRole('link', { name: 'shop-web-1' }).waitFor();
    const press = async (...keys: readonly string[]): Promise<void> => {
      for (const key of keys) await page.keyboard.press(key);
    };
    const focused = async (): Promise<string> =>
      await page.evaluate(
        () => document.activeElement?.getAttribute('aria-label') ?? document.activeElement!.textContent,
      );

    await press('/');
    const search = await focused();
    await page.keyboard.type('shop-j');
    await press('Escape', 'Escape');
    const typed = await page.getByRole('searchbox').inputValue();
    await page.getByRole('link', { name: 'shop-web-1' }).waitFor();
    await press('j', 'j');
    const second = await focused();
    await press('k');
    const first = await focused();
    await press('Enter');
    await page.getByRole('heading', { name: first }).waitFor();
    const screens: string[] = [];
    const titles = { i: 'Images', v: 'Volumes', n: 'Networks', e: 'Events', s: 'System', u: 'not a manager' };
    for (const [key, title] of Object.entries(titles)) {
      await press('g', key);
      await page.getByRole('heading', { name: title, exact: true }).or(page.getByText(title)).first().waitFor();
      screens.push(await page.evaluate(() => location.hash));
    }
    await press('g', 'c');
    await page.getByRole('heading', { name: 'Containers' }).waitFor();

    assert.equal(search, 'Search containers');
    assert.equal(typed, '');
    assert.deepEqual([first, second], ['shop-db-1', 'shop-queue-1']);
    assert.deepEqual(screens, ['#/images', '#/volumes', '#/networks', '#/events', '#/system', '#/cluster']);
  });

  test('several containers are stopped at once, and all are started again by the offer to take it back', async () => {
    await using open = await browser.open();
    const { page } = open;
    const running = async (): Promise<number> => (await browser.engine.get<unknown[]>('/containers/json')).body.length;
    const before = await running();
    await page.getByRole('searchbox', { name: 'Search containers' }).fill('queue');
    await page.getByRole('checkbox', { name: 'Choose shop-queue-1' }).check();
    await page.getByRole('searchbox', { name: 'Search containers' }).fill('cache');
    await page.getByRole('checkbox', { name: 'Choose cache' }).check();
    await page.getByText('2 containers chosen').waitFor();

    await page.getByRole('button', { name: 'Stop', exact: true }).click();
    await page.getByText('Stopped shop-queue-1, cache').or(page.getByText('Stopped cache, shop-queue-1')).waitFor();
    const stopped = await running();
    await page.getByRole('button', { name: 'Start again' }).click();

    assert.ok(await eventually('both run again', async () => (await running()) === before));
    assert.equal(stopped, before - 2);
  });

  test('a volume that is used stays; one without a container is removed, and others are cleaned up after a list', async () => {
    const { engine } = browser;
    for (const Name of ['alone', 'left-1', 'left-2']) await engine.post('/volumes/create', { Name });
    await using open = await browser.open();
    const { page } = open;
    await goTo(page, 'volumes');
    const answer = async (): Promise<void> =>
      await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();

    await page.getByRole('button', { name: 'Remove alone' }).click();
    await answer();
    await page.getByText('Removed alone').waitFor();
    await page.getByRole('link', { name: 'alone' }).waitFor({ state: 'detached' });
    const isLocked = await page.getByRole('button', { name: 'Remove shop_data' }).isDisabled();
    await page.getByRole('button', { name: 'Clean up' }).click();
    await page.getByRole('dialog').getByText('left-2').waitFor();
    await answer();
    await page.getByText(/^Freed /).waitFor();

    const { body } = await engine.get<{ Volumes: { Name: string }[] }>('/volumes');
    assert.deepEqual(
      body.Volumes.map(({ Name }) => Name),
      ['shop_data'],
    );
    assert.equal(isLocked, true);
  });

  test('the map shows networks with their containers and ports, and an empty network is removed', async () => {
    await browser.engine.post('/networks/create', { Name: 'nobody' });
    await using open = await browser.open();
    const { page } = open;
    await goTo(page, 'networks');
    const map = page.getByRole('region', { name: 'Map of networks' });
    await map.getByRole('link', { name: 'shop-web-1' }).waitFor();
    const port = await map.getByRole('link', { name: '8080→80' }).getAttribute('href');

    await page.getByRole('region', { name: 'nobody' }).getByRole('button', { name: 'Remove' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
    await page.getByRole('region', { name: 'nobody' }).waitFor({ state: 'detached' });

    assert.equal(port, 'http://127.0.0.1:8080/');
    assert.equal(await page.getByRole('region', { name: 'shop_default' }).getByRole('button').count(), 0);
    assert.equal((await browser.engine.get('/networks/nobody')).status, 404);
  });

  test('events are filtered by kind and by words, and new ones come by themselves', async () => {
    await using open = await browser.open();
    const { page } = open;
    await goTo(page, 'events');
    await page.getByRole('cell', { name: 'die' }).first().waitFor();
    await page.getByRole('group', { name: 'Events of each half hour' }).waitFor();

    await page.getByRole('button', { name: 'Volumes' }).click();
    await page.getByRole('cell', { name: 'die' }).first().waitFor({ state: 'detached' });
    await browser.engine.post('/volumes/create', { Name: 'eventful' });
    await page.getByRole('cell', { name: 'eventful' }).waitFor();
    await browser.engine.delete('/volumes/eventful');
    await page.getByRole('searchbox', { name: 'Search events' }).fill('destroy eventful');
    await page.getByText(/^1 of \d+ of the last day/).waitFor();

    assert.deepEqual(open.problems, []);
  });

  test('System removes the caches of builds', async () => {
    const { engine } = browser;
    const file = 'FROM busybox\nRUN --mount=type=cache,target=/c --network=none echo kept >/c/f\n';
    const context = new TarWriter().add({ name: 'Dockerfile', content: file }).end();
    await engine.post('/build?networkmode=none', context, { headers: { 'Content-Type': 'application/x-tar' } });
    const caches = async (): Promise<number> =>
      (await engine.get<{ BuildCache: unknown[] }>('/system/df?type=build-cache')).body.BuildCache.length;
    const before = await caches();
    await using open = await browser.open();
    const { page } = open;
    await goTo(page, 'system');

    await page.getByRole('button', { name: 'Clean up: Caches of builds' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
    await page.getByText(/^Freed /).waitFor();

    assert.ok(before > 0);
    assert.equal(await caches(), 0);
  });

  test('System names the use of the disk, and removes stopped containers after a list of them', async () => {
    const { engine } = browser;
    const id = await engine.create(['true'], {}, 'never-started');
    await using open = await browser.open();
    const { page } = open;
    await goTo(page, 'system');
    await page.getByText('overlay').first().waitFor();

    await page.getByRole('button', { name: 'Clean up: Containers' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText('never-started').waitFor();
    await dialog.getByText('shop-worker-1').waitFor();
    await dialog.getByRole('button', { name: 'Remove' }).click();
    await page.getByText(/^Freed /).waitFor();

    assert.equal((await engine.get(`/containers/${id}/json`)).status, 404);
    assert.equal((await engine.get(`/containers/${scene.web}/json`)).status, 200);
    assert.deepEqual(open.problems, []);
  });
});
