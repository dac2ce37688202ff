import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';

import { PageTest } from './browser.ts';

suite('a foreign page in the browser of a session', { concurrency: false }, () => {
  let browser: PageTest;
  let id: string;
  before(async () => {
    browser = await PageTest.start();
    id = await browser.engine.run(['sleep', '1000'], {}, 'target');
  });
  after(async () => await browser[Symbol.asyncDispose]());

  test('it reads nothing, changes nothing, and opens no WebSocket', async () => {
    await using open = await browser.open();
    await open.page.getByRole('row', { name: /target/ }).waitFor();
    const base = open.page.url().split('#')[0]!;
    const evil = await open.context.newPage();
    await evil.route('http://evil.example/**', async (route) => {
      await route.fulfill({ contentType: 'text/html', body: '<!doctype html><title>evil</title>' });
    });
    await evil.goto('http://evil.example/');

    const results = await evil.evaluate(
      async ({ base, id }) => {
        const outcome = async (work: () => Promise<unknown>): Promise<string> =>
          await work().then(
            () => 'reached',
            () => 'refused',
          );
        const socket = async (): Promise<void> =>
          await new Promise((resolve, reject) => {
            const one = new WebSocket(`${base.replace('http', 'ws')}api/v1.51/containers/${id}/attach/ws?stream=1`);
            one.addEventListener('open', () => resolve());
            one.addEventListener('error', () => reject(new Error('refused')));
          });
        const credentials = 'include' as const;
        const stop = `${base}api/v1.51/containers/${id}/stop?t=0`;
        return [
          await outcome(async () => await fetch(`${base}api/v1.51/containers/json`, { credentials })),
          await outcome(async () => await fetch(stop, { method: 'POST', credentials })),
          await outcome(socket),
          await outcome(async () => await fetch(stop, { method: 'POST', mode: 'no-cors', credentials })),
        ];
      },
      { base, id },
    );
    const { body } = await browser.engine.get<{ State: { Running: boolean } }>(`/containers/${id}/json`);

    assert.deepEqual(results, ['refused', 'refused', 'refused', 'refused']);
    assert.equal(body.State.Running, true);
  });

  test('another server of this machine cannot show the page in a frame, nor read it', async () => {
    await using open = await browser.open();
    await open.page.getByRole('row', { name: /target/ }).waitFor();
    const base = open.page.url().split('#')[0]!;
    const other = await open.context.newPage();
    // Both are of one site, so the browser sends the page's cookie along.
    await other.route('http://127.0.0.1:9/**', async (route) => {
      await route.fulfill({ contentType: 'text/html', body: `<!doctype html><iframe src="${base}"></iframe>` });
    });
    await other.goto('http://127.0.0.1:9/');

    const frame = other.frames()[1]!;
    const read = await other.evaluate(
      async (url) =>
        await fetch(url, { credentials: 'include' }).then(
          () => 'reached',
          () => 'refused',
        ),
      `${base}api/v1.51/containers/json`,
    );

    assert.match(frame.url(), /^chrome-error:/);
    assert.equal(await frame.getByText('target').count(), 0);
    assert.equal(read, 'refused');
  });

  test('a name that its owner points at this machine reaches neither page nor API', async () => {
    await using open = await browser.open();
    await open.page.getByRole('row', { name: /target/ }).waitFor();
    const rebound = open.page.url().split('#')[0]!.replace('127.0.0.1', 'rebound.example');
    const evil = await open.context.newPage();

    const entered = await evil.goto(rebound);
    const asked = await evil.evaluate(async (url) => {
      const answer = await fetch(url);
      return [answer.status, await answer.text()] as const;
    }, `${rebound}api/v1.51/containers/json`);

    assert.equal(entered?.status(), 403);
    assert.deepEqual(asked, [403, 'the page is served as 127.0.0.1, [::1] or localhost\n']);
  });
});
