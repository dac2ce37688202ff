import assert from 'node:assert/strict';
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';

import { TestEngine } from '@gantry/testing/test-engine.ts';

import { bundlePage } from '../../tools/bundle-page.ts';

type Invitation = { URL: string; ReadOnly: boolean };
type Asked = { path: string; method?: string; headers?: Record<string, string>; body?: string };
type Answer = { status: number; headers: Record<string, string | string[]>; body: string };

const root = join(import.meta.dirname, '../..');
const WEBSOCKET = {
  connection: 'Upgrade',
  upgrade: 'websocket',
  'sec-websocket-version': '13',
  'sec-websocket-key': 'AAAAAAAAAAAAAAAAAAAAAA==',
};

/** Sends requests to the page's port from a process in the daemon's network namespace, with exactly these headers. */
async function send(engine: TestEngine, port: number, asked: readonly Asked[]): Promise<Answer[]> {
  const program = `
    import { request } from 'node:http';
    import { text } from 'node:stream/consumers';
    const answers = [];
    for (const { path, method = 'GET', headers = {}, body } of ${JSON.stringify(asked)}) {
      const host = '127.0.0.1:${port}';
      const sent = request({ host: '127.0.0.1', port: ${port}, path, method, headers: { host, ...headers }, agent: false });
      sent.end(body);
      answers.push(await new Promise((resolve, reject) => {
        sent.on('error', reject);
        sent.on('response', async (answer) =>
          resolve({ status: answer.statusCode, headers: answer.headers, body: await text(answer) }));
        sent.on('upgrade', (answer, socket) => {
          socket.destroy();
          resolve({ status: answer.statusCode, headers: answer.headers, body: '' });
        });
      }));
    }
    console.log(JSON.stringify(answers));`;
  const said = await engine.onHost([process.execPath, '--input-type=module', '-e', program], { timeout: 120_000 });
  return JSON.parse(said) as Answer[];
}

/** An invitation and the session that it opens. */
class Visitor {
  readonly engine: TestEngine;
  readonly port: number;
  readonly path: string;
  readonly cookie: string;
  readonly answer: Answer;

  private constructor(engine: TestEngine, port: number, answer: Answer) {
    this.engine = engine;
    this.port = port;
    this.answer = answer;
    this.path = String(answer.headers['location']);
    this.cookie = String(answer.headers['set-cookie']).split(';')[0]!;
  }

  static async invited(engine: TestEngine, readOnly = false): Promise<Visitor> {
    const { port, path } = await invite(engine, readOnly);
    const [answer] = await send(engine, port, [{ path }]);
    assert.equal(answer!.status, 303, answer!.body);
    return new Visitor(engine, port, answer!);
  }

  get origin(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** Requests as the page sends them; headers of a request replace those of the page. */
  async ask(...asked: Asked[]): Promise<Answer[]> {
    const own = { cookie: this.cookie, origin: this.origin, 'sec-fetch-site': 'same-origin' };
    return await send(
      this.engine,
      this.port,
      asked.map((one) => ({ ...one, path: `${this.path}${one.path}`, headers: { ...own, ...one.headers } })),
    );
  }

  async statuses(...asked: Asked[]): Promise<number[]> {
    return (await this.ask(...asked)).map(({ status }) => status);
  }
}

async function invite(engine: TestEngine, readOnly = false): Promise<{ port: number; path: string }> {
  const { body, status } = await engine.post<Invitation>('/page', { ReadOnly: readOnly });
  assert.equal(status, 200);
  const url = new URL(body.URL);
  return { port: Number(url.port), path: `${url.pathname}${url.search}` };
}

suite('the page’s port', { concurrency: false }, () => {
  let engine: TestEngine;
  let id: string;
  before(async () => {
    await bundlePage(root, join(root, 'build/app/page'));
    engine = await TestEngine.start({ version: '1.51' });
    id = await engine.run(['sleep', '1000'], {}, 'sleeper');
  });
  after(async () => await engine[Symbol.asyncDispose]());

  test('nothing listens before the first invitation', async () => {
    const listening = await engine.onHost(['cat', '/proc/net/tcp']);

    assert.doesNotMatch(listening, /0100007F:[0-9A-F]{4} 00000000:0000 0A/);
  });

  test('a token opens one session with a cookie for its path alone; a used or unknown token opens none', async () => {
    const { port, path } = await invite(engine);

    const [first, again, unknown, none] = await send(engine, port, [
      { path },
      { path },
      { path: '/?token=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA' },
      { path: '/' },
    ]);

    assert.deepEqual([first!.status, again!.status, unknown!.status, none!.status], [303, 403, 403, 403]);
    const [cookie = ''] = first!.headers['set-cookie']!;
    assert.match(cookie, /^gantry-page=[\w-]{43}; Path=\/[0-9a-f]{32}\/; HttpOnly; SameSite=Strict$/);
    assert.ok(cookie.includes(`Path=${String(first!.headers['location'])};`));
  });

  test('a browser that asks for an icon gets none, without an error', async () => {
    const { port } = await invite(engine);

    const [icon] = await send(engine, port, [{ path: '/favicon.ico' }]);

    assert.equal(icon!.status, 204);
  });

  test('files and API need the cookie of their own session', async () => {
    const [visitor, other] = [await Visitor.invited(engine), await Visitor.invited(engine)];
    const asked = [{ path: '' }, { path: 'main.js' }, { path: 'api/v1.51/containers/json' }];

    const allowed = await visitor.statuses(...asked);
    const withoutCookie = await visitor.statuses(...asked.map((one) => ({ ...one, headers: { cookie: '' } })));
    const foreign = await visitor.statuses(...asked.map((one) => ({ ...one, headers: { cookie: other.cookie } })));

    assert.deepEqual(allowed, [200, 200, 200]);
    assert.deepEqual(withoutCookie, [403, 403, 403]);
    assert.deepEqual(foreign, [403, 403, 403]);
  });

  test('other origins, sites and names of this address are refused, also with the cookie', async () => {
    const visitor = await Visitor.invited(engine);
    const path = 'api/v1.51/containers/json';
    const { port } = visitor;

    const statuses = await visitor.statuses(
      { path, headers: { origin: 'http://evil.example' } },
      { path, headers: { origin: 'null' } },
      { path, headers: { origin: `http://127.0.0.1:${port + 1}` } },
      { path, headers: { origin: `https://127.0.0.1:${port}` } },
      { path, headers: { 'sec-fetch-site': 'cross-site' } },
      { path, headers: { 'sec-fetch-site': 'same-site' } },
      { path, headers: { host: `evil.example:${port}`, origin: `http://evil.example:${port}` } },
      { path, headers: { host: `127.0.0.1.evil.example:${port}` } },
      { path, headers: { host: `localhost.:${port}` } },
      { path, headers: { host: `10.0.0.1:${port}`, origin: `http://10.0.0.1:${port}` } },
    );

    assert.deepEqual(new Set(statuses), new Set([403]));
  });

  test('a change and a WebSocket must name their origin', async () => {
    const visitor = await Visitor.invited(engine);
    const change = { path: `api/v1.51/containers/${id}/pause`, method: 'POST' };
    const socket = { path: `api/v1.51/containers/${id}/attach/ws?stream=1`, headers: WEBSOCKET };
    const { cookie, port, path } = visitor;
    const silent = async (one: Asked): Promise<number> => {
      const asked = { ...one, path: `${path}${one.path}`, headers: { ...one.headers, cookie } };
      return (await send(engine, port, [asked]))[0]!.status;
    };
    const evil = { origin: 'http://evil.example' };

    const statuses = [
      await silent(change),
      await silent(socket),
      ...(await visitor.statuses(
        { ...change, headers: evil },
        { ...socket, headers: { ...socket.headers, ...evil } },
        { ...socket, headers: { ...socket.headers, origin: `http://localhost:${port}` } },
        socket,
      )),
    ];

    assert.deepEqual(statuses, [403, 403, 403, 403, 403, 101]);
    assert.equal(
      (await engine.get<{ State: { Status: string } }>(`/containers/${id}/json`)).body.State.Status,
      'running',
    );
  });

  test('a read-only page refuses changes, connections, and tokens for changes; it reads the rest', async () => {
    const visitor = await Visitor.invited(engine, true);
    const change = (method: string, path: string): Asked => ({ method, path: `api/v1.51${path}` });

    const refused = await visitor.statuses(
      change('POST', `/containers/${id}/stop`),
      change('POST', `/v1.51/containers/${id}/stop`),
      change('DELETE', `/containers/${id}?force=1`),
      change('PUT', `/containers/${id}/archive?path=/`),
      change('POST', '/containers/create'),
      change('POST', `/containers/${id}/exec`),
      change('POST', '/page'),
      change('GET', '/swarm'),
      change('GET', '//%73warm/unlockkey'),
      { path: `api/v1.51/containers/${id}/attach/ws?stream=1&stdin=1`, headers: WEBSOCKET },
      { path: `api/v1.51/containers/${id}/logs?stdout=1`, headers: { connection: 'Upgrade', upgrade: 'tcp' } },
    );
    const read = await visitor.statuses(
      { path: '' },
      { path: 'api/v1.51/containers/json' },
      { path: `api/v1.51/containers/${id}/json` },
      { path: 'api/v1.51/info' },
    );

    // No route has the second path; the ninth is told its clean form, as to every client.
    assert.deepEqual(refused, [403, 403, 403, 403, 403, 403, 403, 403, 301, 403, 403]);
    assert.deepEqual(read, [200, 200, 200, 200]);
    const { body } = await engine.get<{ State: { Running: boolean } }>(`/containers/${id}/json`);
    assert.equal(body.State.Running, true);
  });

  test('every answer has a policy that runs no foreign and no inline script; an answer of the API runs none at all', async () => {
    const visitor = await Visitor.invited(engine);

    const [html, api, missing] = await visitor.ask(
      { path: '' },
      { path: 'api/v1.51/containers/json' },
      { path: '../../../etc/passwd' },
    );

    const policy = String(html!.headers['content-security-policy']);
    assert.match(policy, /^default-src 'none'; script-src 'self';/);
    assert.match(policy, /frame-ancestors 'none'/);
    assert.doesNotMatch(policy, /script-src[^;]*unsafe|\*/);
    assert.match(String(api!.headers['content-security-policy']), /^sandbox; default-src 'none'/);
    assert.equal(api!.headers['x-content-type-options'], 'nosniff');
    for (const { headers } of [html!, api!, missing!]) assert.equal(headers['x-frame-options'], 'DENY');
    assert.equal(missing!.status, 404);
    assert.doesNotMatch(html!.body, /<script>|onload=|https?:/);
  });

  test('a session outlives the daemon on the same port, until all pages are closed', async () => {
    const visitor = await Visitor.invited(engine);
    const file = join(engine.directory, 'exec/page.json');
    const stored = readFileSync(file, 'utf8');

    await engine.kill('SIGKILL');
    await engine.startAgain();
    const [after] = await visitor.statuses({ path: 'api/v1.51/_ping' });
    await engine.delete('/page');
    const refused = await engine
      .onHost([process.execPath, '-e', `fetch('${visitor.origin}').then(() => process.exit(0), () => process.exit(9))`])
      .then(
        () => false,
        (error: { code: number }) => error.code === 9,
      );

    assert.equal(after, 200);
    assert.equal(refused, true);
    assert.equal(stored.includes(visitor.cookie.split('=')[1]!), false);
    assert.throws(() => statSync(file), { code: 'ENOENT' });
  });
});

suite('--page', { concurrency: false }, () => {
  test('the daemon listens there from its start, and --page-read-only makes each page read-only', async () => {
    await using engine = await TestEngine.start({
      version: '1.51',
      flags: ['--page=127.0.0.1:9123', '--page-read-only'],
      image: false,
    });

    const [early] = await send(engine, 9123, [{ path: '/' }]);
    const visitor = await Visitor.invited(engine);
    const statuses = await visitor.statuses(
      { path: 'api/v1.51/volumes/create', method: 'POST' },
      { path: 'api/_ping' },
    );

    assert.equal(early!.status, 403);
    assert.equal(visitor.port, 9123);
    assert.deepEqual(statuses, [403, 200]);
  });
});
