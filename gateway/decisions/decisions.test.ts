/** Proxies ask about requests as their documents say. nginx itself is in the guide (`gateway/guide.root.test.ts`). */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type IncomingMessage, type OutgoingHttpHeaders, request, type RequestOptions } from 'node:http';
import { type AddressInfo, createServer } from 'node:net';
import { text } from 'node:stream/consumers';
import { after, before, suite, test } from 'node:test';

import { eventually } from '@gantry/testing/eventually.ts';
import { type Settings, sha256, TestGateway } from '@gantry/testing/gateway/test-gateway.ts';

type Headers = OutgoingHttpHeaders;
type Decided = Readonly<{ status: number; headers: IncomingMessage['headers']; body: string }>;

/** A proxy in front of a gateway that answers its questions. */
class Asking implements AsyncDisposable {
  readonly gateway: TestGateway;
  readonly #address: URL;

  private constructor(gateway: TestGateway) {
    this.gateway = gateway;
    this.#address = new URL(String(gateway.log.find(({ msg }) => msg === 'proxies are answered')?.['address']));
  }

  static async start(settings: Settings = {}): Promise<Asking> {
    const decisions = { listen: '127.0.0.1:0', ...settings.decisions };
    const own = { upstream: 'http://127.0.0.1:9', trustProxy: ['127.0.0.1'] };
    return new Asking(await TestGateway.start({ ...own, ...settings, decisions }));
  }

  async ask(path: string, headers: Headers = {}, options: RequestOptions & { body?: string } = {}): Promise<Decided> {
    const { hostname: host, port } = this.#address;
    const outgoing = request({ host, port, path, headers, agent: false, ...options });
    outgoing.end(options.body);
    const [incoming] = (await once(outgoing, 'response')) as [IncomingMessage];
    return { status: incoming.statusCode ?? 0, headers: incoming.headers, body: await text(incoming) };
  }

  /** As the guide sets up nginx. */
  async byNginx(method: string, uri: string, client: string, headers: Headers = {}, end = ''): Promise<Decided> {
    const own = { 'x-original-method': method, 'x-original-uri': uri, 'x-forwarded-for': client };
    return await this.ask(`/decide${end}`, { ...headers, ...own });
  }

  async windowsOf(caller: string): Promise<Map<string, number>> {
    const { output } = await this.gateway.cli('explain', caller, '--json');
    const { windows } = JSON.parse(output) as { windows: { name: string; used: number }[] };
    return new Map(windows.map(({ name, used }) => [name, used]));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.gateway[Symbol.asyncDispose]();
  }
}

const FORMS: readonly Readonly<{ proxy: string; path: string; method: string; headers: Headers }>[] = [
  {
    proxy: 'nginx',
    path: '/decide',
    method: 'GET',
    headers: { 'x-original-uri': '/search/users?q=a', 'x-original-method': 'POST' },
  },
  {
    proxy: 'the nginx of an ingress',
    path: '/decide',
    method: 'GET',
    headers: {
      'x-original-url': 'https://api.example.com/search/users?q=a',
      'x-original-method': 'POST',
      'x-sent-from': 'nginx-ingress-controller',
      'x-auth-request-redirect': '/search/users?q=a',
    },
  },
  {
    proxy: 'Traefik',
    path: '/decide',
    method: 'GET',
    headers: {
      'x-forwarded-method': 'POST',
      'x-forwarded-proto': 'https',
      'x-forwarded-host': 'api.example.com',
      'x-forwarded-uri': '/search/users?q=a',
    },
  },
  {
    proxy: 'Caddy',
    path: '/decide',
    method: 'GET',
    headers: {
      'x-forwarded-method': 'POST',
      'x-forwarded-uri': '/search/users?q=a',
      'x-forwarded-proto': 'https',
      'x-forwarded-host': 'api.example.com',
      via: '2.0 Caddy',
    },
  },
  { proxy: 'Envoy', path: '/decide/search/users?q=a', method: 'POST', headers: { 'content-length': '0' } },
  {
    proxy: 'a program by POST',
    path: '/decide',
    method: 'POST',
    headers: { 'x-original-uri': '/search/users?q=a', 'x-original-method': 'POST' },
  },
];

suite('questions of proxies', () => {
  let asking: Asking;
  before(async () => {
    const user = { user: 'ada', sha256: sha256('token-of-ada') } as const;
    asking = await Asking.start({
      identities: { users: { ada: {} }, tokens: [user] },
      limits: { anonymous: 2 },
      secondary: { concurrent: { limit: 1 } },
    });
  });
  after(async () => await asking[Symbol.asyncDispose]());

  for (const [index, { proxy, path, method, headers }] of FORMS.entries()) {
    test(`${proxy}: method, path and address are those of the original request`, async () => {
      const client = `192.0.2.${index + 1}`;

      const {
        status,
        headers: answered,
        body,
      } = await asking.ask(path, { ...headers, 'x-forwarded-for': client }, { method });

      assert.deepEqual([status, body], [200, '']);
      assert.equal(answered['x-ratelimit-limit'], '2');
      assert.equal(answered['x-ratelimit-remaining'], '1');
      assert.equal(answered['x-gantry-decision'], undefined);
      assert.equal((await asking.windowsOf(`ip:${client}`)).get('points POST /search/users'), 5);
    });
  }

  test('credentials are those of the original request, and wrong ones are refused', async () => {
    const good = await asking.byNginx('GET', '/user', '192.0.2.20', { authorization: 'Bearer token-of-ada' });
    const wrong = await asking.byNginx('GET', '/user', '192.0.2.20', { authorization: 'Bearer unknown' });

    assert.deepEqual([good.status, good.headers['x-ratelimit-limit']], [200, '5000']);
    assert.deepEqual([wrong.status, wrong.headers['x-gantry-body']], [401, wrong.body]);
    assert.match(wrong.headers['www-authenticate'] ?? '', /^Bearer/);
  });

  test('a refusal is that of the gateway itself, with its body in a header too', async () => {
    for (const method of ['GET', 'GET']) await asking.byNginx(method, '/user', '192.0.2.21');

    const { status, headers, body } = await asking.byNginx('HEAD', '/user', '192.0.2.21');

    assert.deepEqual([status, headers['x-ratelimit-remaining']], [403, '0']);
    assert.match(body, /^{"message":"API rate limit exceeded for 192\.0\.2\.21\."/);
    assert.equal(headers['x-gantry-body'], body);
  });

  test('GET /rate_limit and paths of GraphQL are decided like others', async () => {
    const status = await asking.byNginx('GET', '/rate_limit', '192.0.2.22');
    const query = await asking.byNginx('POST', '/graphql', '192.0.2.22');
    const read = await asking.ask(
      '/decide/graphql',
      { 'x-forwarded-for': '192.0.2.23', 'content-type': 'application/json' },
      { method: 'POST', body: '{"query":"{ viewer { login } }"}' },
    );

    assert.deepEqual([status.status, query.status, read.status], [200, 200, 200]);
    const points = async (client: string) => (await asking.windowsOf(client)).get('points GraphQL');
    assert.equal(await points('ip:192.0.2.22'), 5); // its body is not here
    assert.equal(await points('ip:192.0.2.23'), 1);
  });

  test('without an end requests do not count as under way', async () => {
    const answers = await Promise.all([1, 2].map(async () => await asking.byNginx('GET', '/user', '192.0.2.24')));

    assert.deepEqual(
      answers.map(({ status }) => status),
      [200, 200],
    );
  });

  test('a request counts as under way until its end, and its seconds as CPU time', async () => {
    const first = await asking.byNginx('GET', '/user', '192.0.2.25', {}, '?end=600');
    const refused = await asking.byNginx('GET', '/user', '192.0.2.25', {}, '?end=600');
    const token = String(first.headers['x-gantry-decision']);
    const report = { 'x-gantry-decision': token, 'x-gantry-seconds': '0.250, 1.250 : -' };

    const ended = await asking.ask('/end', report, { method: 'POST' });

    assert.deepEqual([first.status, refused.status, ended.status], [200, 403, 204]);
    assert.equal(refused.headers['x-gantry-decision'], undefined);
    assert.match(refused.body, /secondary rate limit/);
    assert.equal((await asking.windowsOf('ip:192.0.2.25')).get('cpu'), 1500);
    assert.equal((await asking.ask('/end', report)).status, 404);
    assert.equal((await asking.byNginx('GET', '/user', '192.0.2.25', {}, '?end=600')).status, 200);
  });

  test('a lost end is over in time', async () => {
    const first = await asking.byNginx('GET', '/user', '192.0.2.26', {}, '?end=1');

    assert.equal(first.status, 200);
    await eventually('the request is no longer under way', async () => {
      const { output } = await asking.gateway.cli('explain', 'ip:192.0.2.26');
      return output.startsWith('ip:192.0.2.26: 0 under way');
    });
    assert.equal((await asking.windowsOf('ip:192.0.2.26')).get('cpu') ?? 0, 0);
  });

  const complete = { 'x-original-uri': '/user', 'x-original-method': 'GET', 'x-forwarded-for': '192.0.2.30' };
  const without = (name: keyof typeof complete): Headers => ({ ...complete, [name]: [] });
  const problems: readonly (readonly [path: string, headers: Headers, status: number, message: RegExp])[] = [
    ['/decide', without('x-original-uri'), 400, /The path of the request is expected/],
    ['/decide', without('x-original-method'), 400, /The method of the request is expected/],
    ['/decide', without('x-forwarded-for'), 400, /address is expected in X-Forwarded-For/],
    ['/decide', { ...complete, 'x-forwarded-uri': '/cheap' }, 400, /name different requests/],
    ['/decide', { ...complete, 'x-forwarded-method': 'HEAD' }, 400, /name different requests/],
    ['/decide', { ...complete, 'x-original-method': 'GET, GET' }, 400, /The method of the request is expected/],
    ['/decide', { ...complete, 'x-original-uri': ['/user', '/cheap'] }, 400, /must be percent-encoded|not allowed/],
    ['/decide', { ...complete, 'x-original-uri': 'user' }, 400, /must be a path/],
    ['/decide', { ...complete, 'x-original-uri': '/search%2Fcode' }, 400, /ambiguous/],
    ['/decide', { ...complete, 'x-original-method': 'CONNECT' }, 405, /not a tunnel/],
    ['/decide?end=0', complete, 400, /end is a number of seconds up to 3600/],
    ['/decide?end=soon', complete, 400, /end is a number of seconds up to 3600/],
    ['/decider', complete, 404, /There are \/decide and \/end here/],
    ['/', complete, 404, /There are/],
    ['/end', { 'x-gantry-decision': 'unknown' }, 404, /No request is under way/],
  ];
  for (const [index, [path, headers, status, message]] of problems.entries()) {
    test(`${path} with ${JSON.stringify(headers)} is ${status}`, async () => {
      const named = headers['x-forwarded-for'] === complete['x-forwarded-for'];

      const answer = await asking.ask(path, { ...headers, ...(named && { 'x-forwarded-for': `198.51.100.${index}` }) });

      assert.equal(answer.status, status);
      assert.match(answer.body, message);
    });
  }

  test('only trusted proxies may ask, and report ends', async () => {
    const asked = await asking.ask('/decide', complete, { localAddress: '127.0.0.9' });
    const ended = await asking.ask('/end', {}, { localAddress: '127.0.0.9' });

    assert.deepEqual([asked.status, ended.status], [403, 403]);
    assert.match(asked.body, /Only proxies of trustProxy/);
    await asking.gateway.logged('a decision is refused: its sender is none of trustProxy');
  });
});

test('a refusal has the status of the settings', async () => {
  await using asking = await Asking.start({ limits: { anonymous: 0 }, refusal: { status: 429, retryAfter: true } });

  const { status, headers } = await asking.byNginx('GET', '/user', '192.0.2.1');

  assert.equal(status, 429);
  assert.ok(Number(headers['retry-after']) > 0);
});

test('the end of a request reaches the worker that has decided', async () => {
  const listen = `127.0.0.1:${await freePort()}`;
  await using asking = await Asking.start({
    workers: 2,
    decisions: { listen },
    secondary: { concurrent: { limit: 1 } },
  });
  for (let round = 0; round < 4; round += 1) {
    const decided = await asking.byNginx('GET', '/user', '192.0.2.1', {}, '?end=600');
    assert.equal(decided.status, 200);

    const { status } = await asking.ask('/end', { 'x-gantry-decision': String(decided.headers['x-gantry-decision']) });

    assert.ok(status === 204 || status === 202);
    await eventually('the request has ended', async () => {
      const { output } = await asking.gateway.cli('explain', 'ip:192.0.2.1');
      return output.startsWith('ip:192.0.2.1: 0 under way');
    });
  }
});

async function freePort(): Promise<number> {
  await using server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}
