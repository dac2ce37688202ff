import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, suite, test } from 'node:test';

import { eventually } from '@gantry/testing/eventually.ts';

import { goTo, PageTest } from './browser.ts';

const HOSTILE = '<img src=x onerror="document.title=\'owned\'">';

suite('containers in a browser', { concurrency: false }, () => {
  let browser: PageTest;
  let web: string;
  before(async () => {
    browser = await PageTest.start();
    web = await browser.engine.run(['sleep', '1000'], { StopTimeout: 1 }, 'web');
  });
  after(async () => await browser[Symbol.asyncDispose]());

  const stateOf = async (id: string): Promise<string> =>
    (await browser.engine.get<{ State: { Status: string } }>(`/containers/${id}/json`)).body.State.Status;

  test('a container is stopped and started again by the offer to take it back, in two browsers at once', async () => {
    await using open = await browser.open();
    await using other = await browser.open();
    const { page } = open;
    await other.page.getByRole('row', { name: /web/ }).getByText('running').waitFor();
    await page.getByRole('checkbox', { name: 'Choose web' }).check();

    await page.getByRole('button', { name: 'Stop', exact: true }).click();
    await page.getByText('Stopped web').waitFor();
    await other.page.getByRole('row', { name: /web/ }).getByText('exited').waitFor();
    await page.getByRole('button', { name: 'Start again' }).click();
    await other.page.getByRole('row', { name: /web/ }).getByText('running').waitFor();

    assert.equal(await stateOf(web), 'running');
    assert.deepEqual([...open.problems, ...other.problems], []);
  });

  test('a container is paused, and resumed by the offer to take it back', async () => {
    await using open = await browser.open();
    const { page } = open;
    await goTo(page, `containers/${web}`);

    await page.getByRole('button', { name: 'Pause' }).click();
    await page.getByText('Paused web').waitFor();
    await page.getByText('paused', { exact: true }).first().waitFor();
    assert.equal(await stateOf(web), 'paused');
    await page.locator('.notice').getByRole('button', { name: 'Resume' }).click();
    await page.getByText('running', { exact: true }).first().waitFor();

    assert.equal(await stateOf(web), 'running');
    assert.deepEqual(open.problems, []);
  });

  test('a removal asks first, and a new container appears by itself', async () => {
    await using open = await browser.open();
    const { page } = open;
    const id = await browser.engine.run(['sleep', '1000'], {}, 'passing');
    await page.getByRole('checkbox', { name: 'Choose passing' }).check();
    await page.getByRole('button', { name: 'Remove', exact: true }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click();
    assert.equal(await stateOf(id), 'running');

    assert.equal(await page.getByRole('checkbox', { name: 'Choose passing' }).isChecked(), true);
    await page.getByRole('button', { name: 'Remove', exact: true }).first().click();
    await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
    await page.getByRole('row', { name: /passing/ }).waitFor({ state: 'detached' });

    assert.equal((await browser.engine.get(`/containers/${id}/json`)).status, 404);
  });

  test('labels, commands and log lines of others are text', async () => {
    const labels = { 'com.docker.compose.project': HOSTILE, 'com.docker.compose.service': HOSTILE };
    const script = `echo '${HOSTILE.replaceAll("'", '')}'; printf '\\033]0;owned\\007\\033[31mred\\033[0m \\342\\200\\256rtl\\n'; sleep 1000`;
    const id = await browser.engine.run(['sh', '-c', script], { Labels: labels }, 'hostile');
    await using open = await browser.open();
    const { page } = open;
    await page.getByText(HOSTILE).first().waitFor();
    for (const part of ['summary', 'details', 'logs']) {
      await goTo(page, `containers/${id}/${part}`);
      await page.getByText('img src=x').first().waitFor();
    }
    await page.getByText('red').first().waitFor();

    assert.equal(await page.locator('img').count(), 0);
    assert.notEqual(await page.title(), 'owned');
    assert.deepEqual(open.problems, []);
  });

  test('of a long log only the lines in view exist, a search finds the others, and a time before them is jumped to', async () => {
    const script = 'echo the very first; sleep 2; seq 6000 | sed "s/^/line-/"; sleep 1000';
    const id = await browser.engine.run(['sh', '-c', script], {}, 'lines');
    await eventually('all is printed', async () => (await browser.engine.output(id)).stdout.includes('line-6000'));
    await using open = await browser.open({ timezoneId: 'UTC' });
    const { page } = open;
    await goTo(page, `containers/${id}/logs`);
    await page.getByText('line-6000', { exact: true }).waitFor();
    const drawn = await page.locator('.log-line').count();
    const search = page.getByRole('searchbox', { name: 'Search the log' });

    await search.fill('line-1234');
    await page.getByText(/^1 of \d+ lines/).waitFor();
    await search.fill('');
    const { body } = await browser.engine.get<{ State: { StartedAt: string } }>(`/containers/${id}/json`);
    await page.getByLabel('Jump to time').fill(body.State.StartedAt.slice(0, 19));
    await page.getByText('the very first').waitFor();
    await page.getByRole('button', { name: 'Follow' }).click();
    await page.getByText('line-6000', { exact: true }).waitFor();

    assert.ok(drawn < 300, `${drawn} lines`);
    assert.deepEqual(open.problems, []);
  });

  test('lines have their colours, are chosen by level, and are downloaded as they were printed', async () => {
    const script =
      'printf "ERROR \\033[31mred\\033[0m\\nlevel=warn old\\nplain\\n[info] fine\\n"; echo "no level" >&2; sleep 1000';
    const id = await browser.engine.run(['sh', '-c', script], {}, 'levels');
    await using open = await browser.open({ acceptDownloads: true });
    const { page } = open;
    await goTo(page, `containers/${id}/logs`);
    await page.getByText('5 lines', { exact: true }).waitFor();
    const colour = await page.getByText('red', { exact: true }).getAttribute('class');

    await page.getByRole('button', { name: 'Warnings' }).click();
    await page.getByText('2 of 5 lines').waitFor();
    await page.getByRole('button', { name: 'Errors' }).click();
    await page.getByText('1 of 5 lines').waitFor();
    const download = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Download' }).click();
    const file = await download;

    const text = readFileSync(await file.path(), 'utf8');
    const lines = text.split('\n').map((line) => line.replace(/^\S+ /, ''));
    assert.equal(file.suggestedFilename(), 'levels.log');
    assert.deepEqual(lines.toSorted(), [
      '',
      'ERROR \x1b[31mred\x1b[0m',
      '[info] fine',
      'level=warn old',
      'no level',
      'plain',
    ]);
    assert.equal(colour, 'ansi-1');
    assert.deepEqual(open.problems, []);
  });

  test('files that a container changed are listed', async () => {
    const id = await browser.engine.run(['sh', '-c', 'echo x >/made-here; sleep 1000'], {}, 'changing');
    await using open = await browser.open();

    await goTo(open.page, `containers/${id}/details`);
    await open.page.getByRole('row', { name: '/made-here added' }).waitFor();

    assert.deepEqual(open.problems, []);
  });

  test('a page says that the daemon is away, and shows its containers again when it is back', async () => {
    await using open = await browser.open();
    const { page } = open;
    await page.getByRole('row', { name: /web/ }).waitFor();

    await browser.engine.kill('SIGKILL');
    await page.getByText('The daemon does not answer.').first().waitFor();
    await browser.engine.startAgain();
    await page.getByText('The daemon does not answer.').first().waitFor({ state: 'detached' });
    await page.getByText('The daemon answers again.').waitFor();
    await browser.engine.run(['sleep', '1000'], {}, 'after-restart');
    await page.getByRole('row', { name: /after-restart/ }).waitFor();
    await page.reload();
    await page.getByRole('row', { name: /after-restart/ }).waitFor();

    assert.ok(await eventually('web runs', async () => (await stateOf(web)) === 'running'));
  });
});
