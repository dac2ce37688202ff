import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';

import { goTo, PageTest } from './browser.ts';
import { assertUsable } from './checks.ts';

suite('a cluster in a browser', { concurrency: false }, () => {
  let browser: PageTest;
  before(async () => {
    browser = await PageTest.start();
    const { engine } = browser;
    const made = await engine.post('/swarm/init', { ListenAddr: '127.0.0.1', AdvertiseAddr: '127.0.0.1' });
    assert.equal(made.status, 200, made.raw.toString());
    const Command = ['sh', '-c', 'trap "exit 0" TERM; sleep 100000 & wait'];
    const service = await engine.post('/services/create', {
      Name: 'sleepers',
      TaskTemplate: { ContainerSpec: { Image: 'busybox', Command } },
      Mode: { Replicated: { Replicas: 1 } },
    });
    assert.equal(service.status, 201, service.raw.toString());
  });
  after(async () => {
    await browser.engine.post('/swarm/leave?force=1');
    await browser[Symbol.asyncDispose]();
  });

  test('a service is scaled, and a drained node has no task, with the reason that they wait', async () => {
    await using open = await browser.open();
    const { page } = open;
    await goTo(page, 'cluster');
    await page.getByText('1 of 1', { exact: true }).first().waitFor();

    await page.getByRole('spinbutton', { name: 'Tasks of sleepers' }).fill('2');
    await page.getByRole('button', { name: 'Scale sleepers' }).click();
    await page.getByText('Scaled sleepers to 2').waitFor();
    await page.getByText('2 of 2', { exact: true }).first().waitFor();
    await page.getByRole('button', { name: 'Drain' }).click();
    await page.getByText('0 of 2', { exact: true }).first().waitFor();
    await page
      .getByText(/no suitable node/)
      .first()
      .waitFor();
    await page.getByRole('button', { name: 'Activate' }).click();
    await page.getByText('2 of 2', { exact: true }).first().waitFor();

    assert.deepEqual(open.problems, []);
  });

  test('a service is updated to another image, and its rollout is shown', async () => {
    const { engine } = browser;
    await engine.post('/images/busybox/tag?repo=later&tag=2');
    await using open = await browser.open();
    const { page } = open;
    await goTo(page, 'cluster');

    await page.getByRole('textbox', { name: 'Image of sleepers' }).fill('later:2');
    await page.getByRole('button', { name: 'Update sleepers' }).click();
    await page.getByText('Updated sleepers to later:2').waitFor();
    await page.getByText('completed', { exact: true }).first().waitFor();

    type Task = { Spec: { ContainerSpec: { Image: string } } };
    const { body } = await engine.get<Task[]>('/tasks?filters={"desired-state":["running"]}');
    const images = body.map(({ Spec }) => Spec.ContainerSpec.Image);
    assert.deepEqual(images, ['later:2', 'later:2']);
    assert.deepEqual(open.problems, []);
  });

  test('a read-only page shows the cluster, and changes nothing in it', async () => {
    await using open = await browser.open({ readOnly: true });
    const { page } = open;
    await goTo(page, 'cluster');
    await page.getByText('sleepers').first().waitFor();

    assert.equal(await page.getByRole('button', { name: /Scale|Update|Drain|Activate/ }).count(), 0);
  });

  test('the screen has no serious finding of axe-core and fits 390 px, in both colour schemes', async () => {
    await using open = await browser.open();
    await goTo(open.page, 'cluster');
    await open.page.getByRole('button', { name: 'Scale sleepers' }).waitFor();

    await assertUsable(open.page, 'cluster');
  });
});
