import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';

import type { TestEngine } from '@gantry/testing/test-engine.ts';
import type { Page } from 'playwright-core';

import { goTo, PageTest } from '../browser.ts';
import { makeScene } from '../scene.ts';

const folder = join(import.meta.dirname, '../../../docs/pictures');
const MAX_BYTES = 100_000;
const MAX_PICTURES = 12;
const VIEWPORT = { width: 1080, height: 560 };
/** A chart has a point a second. */
const CHARTED_MS = 40_000;

/** `./gantry test page/tests/pictures` makes the pictures of the docs anew. */
test('each screen has a picture of at most 100 kB in docs/pictures', async () => {
  mkdirSync(folder, { recursive: true });
  await using browser = await PageTest.start();
  const { web, worker } = await makeScene(browser.engine);
  await using open = await browser.open({ viewport: VIEWPORT, colorScheme: 'light', timezoneId: 'UTC' });
  const { page } = open;
  const take = async (name: string, place: string, shown: () => ReturnType<Page['locator']>): Promise<void> => {
    await goTo(page, place);
    await shown().waitFor();
    await page.screenshot({ path: join(folder, `${name}.png`), animations: 'disabled' });
  };

  const webRow = (): ReturnType<Page['locator']> => page.getByRole('row', { name: /shop-web-1/ }).getByText('%');
  await take('containers', 'containers', webRow);
  await page.setViewportSize({ width: 390, height: VIEWPORT.height });
  await take('containers-narrow', 'containers', webRow);
  await page.setViewportSize(VIEWPORT);
  await take('crash', `containers/${worker}`, () => page.getByText('docker run').first());
  await goTo(page, `containers/${web}`);
  await page.locator('.chart canvas').first().waitFor();
  await page.waitForTimeout(CHARTED_MS);
  await page.emulateMedia({ colorScheme: 'dark' });
  await take('container-dark', `containers/${web}`, () => page.locator('.chart canvas').first());
  await page.emulateMedia({ colorScheme: 'light' });
  await page.setViewportSize({ ...VIEWPORT, height: 440 }); // a picture full of text is large
  await take('logs', `containers/${web}/logs`, () => page.getByText('no connection to the bank').first());
  await page.setViewportSize(VIEWPORT);
  await goTo(page, `containers/${web}/terminal`);
  await page.getByText('/ #').first().waitFor();
  await page.keyboard.type('ps | head -5\n');
  await take('terminal', `containers/${web}/terminal`, () => page.locator('.xterm-rows').getByText('COMMAND').first());
  await take('image', 'images/busybox', () => page.getByRole('heading', { name: 'Steps' }));
  await take('volume', 'volumes/shop_data', () => page.getByRole('button', { name: 'rows' }));
  await take('networks', 'networks', () => page.getByRole('region', { name: 'Map of networks' }));
  await take('events', 'events', () => page.getByRole('link', { name: 'shop-web-1' }).first());
  await take('system', 'system', () => page.getByRole('cell', { name: 'Caches of builds', exact: true }));
  await startCluster(browser.engine);
  await take('cluster', 'cluster', () => page.getByText('3 of 3', { exact: true }).first());
  await browser.engine.post('/swarm/leave?force=1');

  const pictures = readdirSync(folder).map((name) => ({ name, bytes: statSync(join(folder, name)).size }));
  assert.ok(pictures.length <= MAX_PICTURES, `${pictures.length} pictures`);
  assert.deepEqual(
    pictures.filter(({ bytes }) => bytes > MAX_BYTES),
    [],
  );
});

/** A manager with a service. */
async function startCluster(engine: TestEngine): Promise<void> {
  await engine.post('/swarm/init', { ListenAddr: '127.0.0.1', AdvertiseAddr: '127.0.0.1' });
  const service = await engine.post('/services/create', {
    Name: 'api',
    TaskTemplate: { ContainerSpec: { Image: 'busybox', Command: ['sleep', '1000'] } },
    Mode: { Replicated: { Replicas: 3 } },
  });
  assert.equal(service.status, 201, service.raw.toString());
}
