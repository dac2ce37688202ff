import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';

import { TarWriter } from '@gantry/testing/archives/tar-writer.ts';
import { Registries } from '@gantry/testing/registries/registries.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

/** Not loopback, so that certificates count; it is on `lo` of the test's namespace only. */
const HOST = '192.0.2.1';
/** One that is asked by way of a proxy. */
const PROXIED = '192.0.2.3';

suite('addresses of registries', { concurrency: false }, () => {
  let engine: TestEngine;
  let registries: Registries;
  const folder = mkdtempSync(join(tmpdir(), 'registry-certs-'));
  const file = (name: string): string => join(folder, name);

  before(async () => {
    makeCertificates();
    for (const place of [`${HOST}:5443`, `${HOST}:5446`, `${PROXIED}:5443`, `${PROXIED}:5446`]) {
      mkdirSync(file(place));
      copyFileSync(file('ca.pem'), file(`${place}/ca.crt`));
    }
    for (const host of [HOST, PROXIED]) {
      copyFileSync(file('server.pem'), file(`${host}:5446/client.cert`));
      copyFileSync(file('server.key'), file(`${host}:5446/client.key`));
    }
    engine = await TestEngine.start({
      image: false,
      within: ['env', 'HTTPS_PROXY=http://127.0.0.1:5009', `NO_PROXY=${HOST},192.0.2.2`],
      flags: [
        '--bridge=none',
        `--registry-certs-dir=${folder}`,
        `--insecure-registry=${HOST}:5445`,
        '--insecure-registry=192.0.2.2/32',
        '--registry-mirror=http://127.0.0.1:5001',
      ],
    });
    for (const address of [HOST, PROXIED, '192.0.2.2'])
      await engine.onHost(['ip', 'address', 'add', `${address}/32`, 'dev', 'lo']);
    registries = await Registries.start(join(engine.directory, 'netns'));
    const tls = { cert: file('server.pem'), key: file('server.key') };
    await registries.registry(5000);
    await registries.proxy(5001, 5000);
    for (const port of [5443, 5444, 5445]) await registries.registry(port, { address: HOST, tls });
    for (const address of [HOST, PROXIED])
      await registries.registry(5446, { address, tls: { ...tls, clients: file('ca.pem') } });
    for (const port of [5443, 5444]) await registries.registry(port, { address: PROXIED, tls });
    await registries.forwarder(5009);
    await registries.registry(5447, { tls });
    await registries.registry(5448, { address: HOST });
    await registries.registry(5448, { address: '192.0.2.2' });
  });
  after(async () => {
    await registries[Symbol.asyncDispose]();
    await engine[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true });
  });

  function makeCertificates(): void {
    const openssl = (...words: string[]): void => void execFileSync('openssl', words, { stdio: 'ignore' });
    const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
    openssl(
      'req',
      '-x509',
      ...key,
      '-keyout',
      file('ca.key'),
      '-out',
      file('ca.pem'),
      '-days',
      '30',
      '-subj',
      '/CN=ca',
    );
    openssl('req', ...key, '-keyout', file('server.key'), '-out', file('server.csr'), '-subj', '/CN=registry');
    writeFileSync(file('names'), `subjectAltName=IP:${HOST},IP:${PROXIED}\n`);
    const signed = ['-CA', file('ca.pem'), '-CAkey', file('ca.key'), '-CAcreateserial', '-extfile', file('names')];
    openssl('x509', '-req', '-in', file('server.csr'), '-out', file('server.pem'), '-days', '30', ...signed);
  }

  // An address is right when the registry behind it can say that it has no such image.
  const THERE = /manifest for .* not found/;
  const cases: [string, string, RegExp][] = [
    ['https with an authority of the folder', `${HOST}:5443`, THERE],
    ['https with an unknown authority', `${HOST}:5444`, /x509: certificate signed by unknown authority/],
    ['https with an unknown authority, insecure by its name', `${HOST}:5445`, THERE],
    ['https with a certificate of our own', `${HOST}:5446`, THERE],
    ['https with an unknown authority on loopback', '127.0.0.1:5447', THERE],
    ['plain HTTP', `${HOST}:5448`, /server gave HTTP response to HTTPS client/],
    ['plain HTTP, insecure by its range', '192.0.2.2:5448', THERE],
  ];
  for (const [what, registry, expected] of cases) {
    test(what, async () => {
      const answer = await engine.post<{ message: string }>(`/images/create?fromImage=${registry}/x&tag=1`);

      assert.match(answer.body.message, expected);
    });
  }

  const tunnelled: [string, string, RegExp][] = [
    ['with an authority of the folder', `${PROXIED}:5443`, THERE],
    ['with a certificate of our own', `${PROXIED}:5446`, THERE],
    ['with an unknown authority', `${PROXIED}:5444`, /x509: certificate signed by unknown authority/],
  ];
  for (const [what, registry, expected] of tunnelled) {
    test(`https through a proxy, ${what}: the proxy hears of the address alone`, async () => {
      await registries.seen();

      const answer = await engine.post<{ message: string }>(`/images/create?fromImage=${registry}/x&tag=1`, undefined, {
        headers: {
          'X-Registry-Auth': Buffer.from('{"username":"alice","password":"secret-of-alice"}').toString('base64'),
        },
      });

      assert.match(answer.body.message, expected);
      const seen = await registries.seen();
      assert.ok(seen.length > 0);
      for (const request of seen) {
        assert.deepEqual(request, { method: 'CONNECT', path: registry, authorization: '', range: '' });
      }
    });
  }

  test('hosts that NO_PROXY names are asked without the proxy', async () => {
    await registries.seen();

    const answer = await engine.post<{ message: string }>(`/images/create?fromImage=${HOST}:5443/x&tag=1`);

    assert.match(answer.body.message, THERE);
    assert.deepEqual(await registries.seen(), []);
  });

  test('a proxy that does not answer is told, without its name and password', async () => {
    await using lonely = await TestEngine.start({
      image: false,
      netns: join(engine.directory, 'netns'),
      within: ['env', 'HTTPS_PROXY=http://somebody:secret-of-proxy@127.0.0.1:5010'],
      flags: ['--bridge=none', `--registry-certs-dir=${folder}`],
    });

    const answer = await lonely.post<{ message: string }>(`/images/create?fromImage=${PROXIED}:5443/x&tag=1`);

    assert.match(answer.body.message, /connection refused/);
    assert.doesNotMatch(answer.raw.toString() + lonely.log, /secret-of-proxy/);
  });

  test('images of docker.io come from a mirror, which gets no credentials', async () => {
    const layer = new TarWriter().add({ name: 'a', content: 'a' }).end();
    await registries.putImage('127.0.0.1:5000/v2/library/mirrored', 'latest', [layer]);
    const auth = Buffer.from(JSON.stringify({ username: 'alice', password: 'secret' })).toString('base64');

    const answer = await engine.post('/images/create?fromImage=mirrored&tag=latest', undefined, {
      headers: { 'X-Registry-Auth': auth },
    });

    assert.match(answer.raw.toString(), /Downloaded newer image for mirrored:latest/);
    const seen = (await registries.seen()).filter(({ path }) => path.includes('mirrored'));
    assert.ok(seen.length > 0);
    assert.ok(seen.every(({ authorization }) => authorization === ''));
    const { body } = await engine.get<{ RepoTags: string[] }>('/images/mirrored/json');
    assert.deepEqual(body.RepoTags, ['mirrored:latest']);
  });

  test('/info shows mirrors and insecure registries', async () => {
    const { body } = await engine.get<{ RegistryConfig: Record<string, unknown> }>('/info');

    assert.deepEqual(body.RegistryConfig.Mirrors, ['http://127.0.0.1:5001/']);
    assert.deepEqual(body.RegistryConfig.InsecureRegistryCIDRs, ['192.0.2.2/32', '127.0.0.0/8']);
  });
});
