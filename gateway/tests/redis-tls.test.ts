/** Redis by TLS, with certificates of an authority of the test's own, and users with rights of their own. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempDisposable, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { promisify } from 'node:util';

import { eventually } from '@gantry/testing/eventually.ts';
import { runGatewayCommand, type Settings, TestGateway } from '@gantry/testing/gateway/test-gateway.ts';
import { TestUpstream } from '@gantry/testing/gateway/test-upstream.ts';
import { TestRedis } from '@gantry/testing/redis/test-redis.ts';

type Store = NonNullable<Settings['store']>;

/** A script for openssl: authorities `ca` and `other`, certificates that `ca` has signed. */
const CERTIFICATES = `
set -e
authority() { openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 -subj /CN=$1 -keyout $1.key -out $1.pem; }
authority ca; authority other
mkdir issued; touch index; echo 01 > serial
printf '[ca]\\ndefault_ca=c\\n[c]\\ndatabase=index\\nserial=serial\\nnew_certs_dir=issued\\ndefault_md=sha256\\npolicy=p\\nx509_extensions=e\\nunique_subject=no\\n[p]\\ncommonName=supplied\\n[e]\\nsubjectAltName=IP:127.0.0.1\\n' > ca.conf
issue() {
  openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=$1 -keyout $1.key -out $1.csr
  openssl ca -batch -config ca.conf -cert ca.pem -keyfile ca.key -startdate $2 -enddate $3 -in $1.csr -out $1.pem -notext
}
issue server 20200101000000Z 20900101000000Z
issue gateway 20200101000000Z 20900101000000Z
issue expired 20200101000000Z 20200102000000Z
`;

const USERS = [
  'user default off',
  'user gateway on >secret ~gantry:* &gantry:* +eval +evalsha +get +mget +scan +publish +subscribe +ping +client +hello +time +set +setrange +del +hgetall +hset +hdel',
  'user reader on >secret ~gantry:* &* +get +ping +client +hello',
];

suite('Redis by TLS', () => {
  const undo = new AsyncDisposableStack();
  let folder: string;
  let upstream: TestUpstream;
  let good: number;
  let expired: number;
  before(async () => {
    folder = undo.use(await mkdtempDisposable(join(tmpdir(), 'gantry-redis-tls-'))).path;
    await promisify(execFile)('bash', ['-c', CERTIFICATES], { cwd: folder });
    await writeFile(join(folder, 'users.acl'), `${USERS.join('\n')}\n`);
    upstream = undo.use(await TestUpstream.start());
    const start = async (certificate: string, ...more: string[]): Promise<number> => {
      const redis = undo.use(TestRedis.prepare());
      const port = await freePort();
      const files = ['--tls-cert-file', file(`${certificate}.pem`), '--tls-key-file', file(`${certificate}.key`)];
      await redis.startWith(
        '--port',
        '0',
        '--tls-port',
        `${port}`,
        '--tls-ca-cert-file',
        file('ca.pem'),
        ...files,
        '--save',
        '',
        ...more,
      );
      return port;
    };
    good = await start('server', '--aclfile', file('users.acl'));
    expired = await start('expired');
  });
  after(async () => await undo.disposeAsync());

  const file = (name: string): string => join(folder, name);
  const own = (): NonNullable<Store['tls']> => ({
    caFile: file('ca.pem'),
    certFile: file('gateway.pem'),
    keyFile: file('gateway.key'),
  });
  const settings = (store: Store): Settings => ({ upstream: upstream.url, store: { kind: 'redis', ...store } });

  test('a client certificate and a user of its own count, and are asked for overrides', async () => {
    const store = { url: `rediss://gateway:secret@127.0.0.1:${good}`, tls: own() };
    await using one = await TestGateway.start(settings(store));
    await using two = await TestGateway.start(settings(store));

    const used = [];
    for (const gateway of [one, two, one]) used.push((await gateway.request('/user')).headers['x-ratelimit-used']);
    const forgiven = await one.cli('forgive', 'ip:127.0.0.1');
    const overridden = await one.cli('override', 'user:ada', '--limit', '7');
    const limited = await one.cli('explain');

    assert.deepEqual(used, ['1', '2', '3']);
    for (const { code, output } of [forgiven, overridden, limited]) assert.equal(code, 0, output);
    assert.equal((await two.request('/user')).headers['x-ratelimit-used'], '1');
  });

  const troubles: readonly (readonly [string, () => Store, RegExp])[] = [
    [
      'another authority',
      () => ({ url: `rediss://gateway:secret@127.0.0.1:${good}`, tls: { ...own(), caFile: file('other.pem') } }),
      /certificate/,
    ],
    ['no authority', () => ({ url: `rediss://gateway:secret@127.0.0.1:${good}` }), /certificate/],
    [
      'no certificate of its own',
      () => ({ url: `rediss://gateway:secret@127.0.0.1:${good}`, tls: { caFile: file('ca.pem') } }),
      /certificate required/,
    ],
    [
      'an expired certificate of the server',
      () => ({ url: `rediss://127.0.0.1:${expired}`, tls: own() }),
      /certificate has expired/,
    ],
    [
      'a wrong password',
      () => ({ url: `rediss://gateway:wrong@127.0.0.1:${good}`, tls: own() }),
      /redis refuses the user or the password/,
    ],
    ['no user', () => ({ url: `rediss://127.0.0.1:${good}`, tls: own() }), /redis wants a password/],
    [
      'a user without the right',
      () => ({ url: `rediss://reader:secret@127.0.0.1:${good}`, tls: own() }),
      /redis forbids its user a command/,
    ],
    [
      'plain text to the TLS port',
      () => ({ url: `redis://gateway:secret@127.0.0.1:${good}` }),
      /"reason":"the connection broke"/,
    ],
  ];
  for (const [what, store, words] of troubles) {
    test(`${what}: nothing passes, and the log says why`, async () => {
      await using gateway = await TestGateway.start(settings(store()));

      const { status } = await gateway.request('/user');

      assert.equal(status, 503);
      await eventually('the log says why', () => {
        if (words.test(gateway.output)) return true;
        throw new Error(gateway.output.slice(-1500));
      });
      assert.doesNotMatch(gateway.output, /secret|PRIVATE KEY/);
    });
  }

  test('files that are wrong are found before the start', async () => {
    const check = async (tls: NonNullable<Store['tls']>, url = 'rediss://127.0.0.1:1'): Promise<string> => {
      await writeFile(file('gateway.json'), JSON.stringify(settings({ url, tls })));
      return (await runGatewayCommand('--check-config', file('gateway.json'))).output;
    };

    assert.match(await check({ caFile: file('missing.pem') }), /store\.tls: .*missing\.pem/);
    assert.match(await check({ certFile: file('gateway.pem') }), /certFile and keyFile belong together/);
    assert.match(
      await check({ ...own(), keyFile: file('server.key') }),
      /server\.key is not the key of .*gateway\.pem/,
    );
    assert.match(await check(own(), 'redis://127.0.0.1:1'), /it is for rediss:\/\//);
    assert.match(await check(own()), /: OK/);
  });
});

async function freePort(): Promise<number> {
  await using server = createServer().listen(0, '127.0.0.1');
  const { promise, resolve } = Promise.withResolvers<void>();
  server.once('listening', resolve);
  await promise;
  return (server.address() as { port: number }).port;
}
