import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { type IncomingMessage, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, test } from 'node:test';
import { promisify } from 'node:util';

import { runGatewayCommand, sha256, TestGateway } from '@gantry/testing/gateway/test-gateway.ts';
import { TestUpstream } from '@gantry/testing/gateway/test-upstream.ts';

import { foreign } from './foreign.ts';
import { TopCallers, topOf } from './top-callers.ts';

const EVIL = '<img src=x onerror="document.title=`run`"><script>document.title="run"</script>';

const upstream = await TestUpstream.start();
const gateway = await TestGateway.start({
  upstream: upstream.url,
  workers: 2,
  limits: { anonymous: 2, user: 3 },
  identities: {
    users: { [EVIL]: {} },
    tokens: [{ sha256: sha256('of-evil'), user: EVIL }],
  },
  admin: { page: '127.0.0.1:0' },
});
const address = (await gateway.logged('the page is served'))['page'] as { port: number };
const url = `http://127.0.0.1:${address.port}`;
after(async () => {
  await gateway[Symbol.asyncDispose]();
  await upstream[Symbol.asyncDispose]();
});

type Shown = {
  limited: { key: string; refusedBy: string; refused: number }[];
  top: { key: string; admitted: number; refused: number }[];
  history: { admitted: number; refused: number }[];
};

async function get(path: string, headers: Record<string, string> = {}): Promise<{ status: number; body: string }> {
  const outgoing = request({ host: '127.0.0.1', port: address.port, path, headers, agent: false });
  outgoing.end();
  const [incoming] = (await once(outgoing, 'response')) as [IncomingMessage];
  return { status: incoming.statusCode ?? 0, body: await text(incoming) };
}

test("a browser shows limited callers, top callers and the last hour, and runs nothing of callers' names", async () => {
  for (let n = 0; n < 5; n += 1) await gateway.request('/user', { token: 'of-evil' });
  for (let n = 0; n < 3; n += 1) await gateway.request('/user');
  const profile = mkdtempSync(join(tmpdir(), 'gantry-page-'));

  const flags = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--no-first-run'];
  const { stdout: dom } = await promisify(execFile)(
    'chromium',
    [...flags, `--user-data-dir=${profile}`, '--virtual-time-budget=4000', '--dump-dom', `${url}/`],
    { timeout: 180_000, maxBuffer: 10_000_000 },
  ).finally(() => rmSync(profile, { recursive: true, force: true }));

  const rowsOf = (id: string): string[] => {
    const table = new RegExp(`<table id="${id}">[^]*?<tbody>([^]*?)</tbody>`).exec(dom)?.[1] ?? '';
    return [...table.matchAll(/<tr>(.*?)<\/tr>/gs)].map(([, row = '']) =>
      row.replaceAll(/<\/?td[^>]*>/g, '|').replaceAll('||', '|'),
    );
  };
  const evil = 'user:&lt;img src=x onerror="document.title=`run`"&gt;&lt;script&gt;document.title="run"&lt;/script&gt;';
  assert.ok(
    rowsOf('limited').some((row) => row.startsWith(`|${evil}|primary|core|`)),
    dom,
  );
  assert.deepEqual(rowsOf('top').slice(0, 2), [`|${evil}|3|2|`, '|ip:127.0.0.1|2|1|']);
  assert.match(dom, /<title>Gantry gateway<\/title>/);
  assert.match(dom, /5 admitted, 3 refused, 0 on trial/);
  assert.match(dom, /<rect [^>]*class="refused"/);
  const times = [...dom.matchAll(/<time datetime="([^"]+)">[^<]*\d\d:\d\d/g)].map(([, at = '']) => Date.parse(at));
  assert.deepEqual(
    times.slice(1).map((at, index) => at - times[index]!),
    Array.from({ length: 4 }, () => 15 * 60_000),
  );
  assert.match(dom, /<p id="trouble" role="alert"><\/p>/);
});

test('the same is on the admin socket, and in numbers', async () => {
  const onPort = JSON.parse((await get('/page.json')).body) as Shown;
  const outgoing = request({ socketPath: gateway.adminSocket, path: '/page.json', agent: false });
  outgoing.end();
  const [incoming] = (await once(outgoing, 'response')) as [IncomingMessage];
  const onSocket = JSON.parse(await text(incoming)) as Shown;

  assert.deepEqual(onSocket.limited, onPort.limited);
  assert.deepEqual(onSocket.top, onPort.top);
  assert.equal(onSocket.history.length, onPort.history.length);
});

test('other sites get nothing, whatever name leads here, and nothing can be changed', async () => {
  const host = `127.0.0.1:${address.port}`;
  const refused = [
    await get('/page.json', { host: `evil.example:${address.port}` }),
    await get('/page.json', { host: 'evil.example' }),
    await get('/', { host, origin: 'http://evil.example' }),
    await get('/', { host, origin: 'null' }),
    await get('/page.json', { host, 'sec-fetch-site': 'cross-site' }),
  ];
  const allowed = [
    await get('/', { host }),
    await get('/', { host: `localhost:${address.port}`, 'sec-fetch-site': 'none' }),
    await get('/page.json', { host, origin: url, 'sec-fetch-site': 'same-origin' }),
  ];
  const others = [await get('/limited'), await get('/forgive'), await get('/page')];

  assert.deepEqual(
    [...refused, ...allowed, ...others].map(({ status }) => status),
    [403, 403, 403, 403, 403, 200, 200, 200, 404, 404, 404],
  );
  assert.equal(foreign({ host: '[::1]:80' }, 80), undefined);
  assert.equal(foreign({ host: 'localhost' }, 80), undefined);
  assert.notEqual(foreign({ host: '127.0.0.1.evil.example:80' }, 80), undefined);
});

test('a page for other machines is refused', async () => {
  const before = gateway.settings;
  gateway.write({ upstream: upstream.url, admin: { page: '0.0.0.0:9102' } });
  const { output } = await runGatewayCommand('--check-config', gateway.file);
  gateway.write(before);

  assert.match(output, /admin\.page: 127\.0\.0\.1:port or \[::1\]:port is expected/);
});

test('a top caller is not lost among many that ask once', () => {
  using top = new TopCallers();
  for (let n = 0; n < 50_000; n += 1) {
    top.note(`ip:${n}`, true);
    if (n % 50 === 0) top.note('user:often', n % 100 === 0);
  }
  top.endMinute();
  top.note('user:often', true);

  const [first, ...others] = top.list();

  assert.deepEqual(first, { key: 'user:often', admitted: 501, refused: 500 });
  assert.ok(others.length > 0 && others.length < 100);
  assert.deepEqual(topOf([first, first]), [{ key: 'user:often', admitted: 1002, refused: 1000 }]);
});
