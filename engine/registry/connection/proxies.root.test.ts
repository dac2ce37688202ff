import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';

import { TarWriter } from '@gantry/testing/archives/tar-writer.ts';
import { Registries } from '@gantry/testing/registries/registries.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

const [NAME, PASSWORD] = ['ali ce', 'p@ss-of-proxy'];
const AUTHORIZATION = `Basic ${Buffer.from(`${NAME}:${PASSWORD}`).toString('base64')}`;
const proxyWith = (password: string): string =>
  `http://${encodeURIComponent(NAME)}:${encodeURIComponent(password)}@127.0.0.1:5009`;
/** On `lo` of the test's namespace, and not loopback: the proxy counts. */
const HOST = '192.0.2.7';
const [PLAIN, TLS] = [`${HOST}:5000`, `${HOST}:5443`];
const FLAGS = ['--bridge=none', '--insecure-registry=192.0.2.0/24', '--debug'];

suite('a proxy with a name and a password', { concurrency: false }, () => {
  let engine: TestEngine;
  let registries: Registries;
  const folder = mkdtempSync(join(tmpdir(), 'registry-proxies-'));
  before(async () => {
    engine = await TestEngine.start({ image: false, within: ['env', ...environment(PASSWORD)], flags: FLAGS });
    await engine.onHost(['ip', 'address', 'add', `${HOST}/32`, 'dev', 'lo']);
    registries = await Registries.start(join(engine.directory, 'netns'));
    await registries.registry(5000, { address: HOST });
    await registries.registry(5443, { address: HOST, tls: certificate() });
    await registries.index(5010, [{ name: 'found' }]);
    await registries.forwarder(5009, AUTHORIZATION);
    const layer = new TarWriter().add({ name: 'far', content: 'far' }).end();
    await registries.putImage(`${PLAIN}/v2/far`, '1', [layer]);
  });
  after(async () => {
    await registries[Symbol.asyncDispose]();
    await engine[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true });
  });

  function environment(password: string): string[] {
    return ['HTTP', 'HTTPS'].map((kind) => `${kind}_PROXY=${proxyWith(password)}`);
  }

  function certificate(): { cert: string; key: string } {
    const files = { cert: join(folder, 'cert.pem'), key: join(folder, 'key.pem') };
    const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-keyout', files.key];
    const words = ['req', '-x509', ...key, '-out', files.cert, '-days', '30', '-subj', '/CN=registry'];
    execFileSync('openssl', [...words, '-addext', `subjectAltName=IP:${HOST}`], { stdio: 'ignore' });
    return files;
  }

  const textOf = async (of: TestEngine, path: string, body?: unknown): Promise<string> =>
    (await of.post(path, body)).raw.toString();
  /** Requests since the last call: the proxy's, and the index's. */
  const seen = async (): Promise<{ toProxy: string[]; elsewhere: string[] }> => {
    const all = await registries.seen();
    const toProxy = all.filter(({ proxyAuthorization }) => proxyAuthorization !== undefined);
    assert.ok(toProxy.every(({ proxyAuthorization }) => proxyAuthorization === AUTHORIZATION));
    const shown = (of: typeof all): string[] => of.map(({ method, path }) => `${method} ${path}`);
    return { toProxy: shown(toProxy), elsewhere: shown(all.filter((each) => !toProxy.includes(each))) };
  };

  test('is told them by pulls and pushes, plain and through a tunnel', async () => {
    await registries.seen();

    assert.match(await textOf(engine, `/images/create?fromImage=${PLAIN}/far&tag=1`), /Downloaded newer image/);
    const plain = await seen();
    assert.equal((await engine.post(`/images/${PLAIN}/far:1/tag?repo=${TLS}/far&tag=2`)).status, 201);
    const headers = { 'X-Registry-Auth': 'e30=' };
    const pushed = await engine.post(`/images/${TLS}/far/push?tag=2`, undefined, { headers });
    assert.match(pushed.raw.toString(), /2: digest: sha256:/);
    const tunnelled = await seen();

    assert.ok(plain.toProxy.some((each) => each.startsWith(`GET http://${PLAIN}/v2/far/`)));
    assert.deepEqual(new Set(tunnelled.toProxy), new Set([`CONNECT ${TLS}`]));
    assert.deepEqual([plain.elsewhere, tunnelled.elsewhere], [[], []]);
  });

  test('is told them by searches, imports and ADD, and nobody else is', async () => {
    await registries.seen();
    const source = `http://${HOST}:5010/v1/search?q=found&n=1`;
    const file = new TarWriter().add({ name: 'Dockerfile', content: `FROM scratch\nADD ${source} /x\n` }).end();
    const headers = { 'Content-Type': 'application/x-tar' };

    assert.match((await engine.get(`/images/search?term=${HOST}:5010/found`)).raw.toString(), /"found"/);
    await engine.post(`/images/create?fromSrc=${encodeURIComponent(source)}`); // it is no archive
    assert.match((await engine.post('/build', file, { headers })).raw.toString(), /Successfully built/);

    const { toProxy, elsewhere } = await seen();
    const asked = toProxy.filter((each) => each !== `CONNECT ${HOST}:5010`); // https is tried first
    assert.ok(asked.length >= 3 && asked.every((each) => each.startsWith(`GET http://${HOST}:5010/`)), toProxy.join());
    assert.ok(
      elsewhere.every((each) => each.startsWith('GET /v1/')),
      elsewhere.join(),
    ); // the index itself
  });

  test('has them shown nowhere: not in /info, events, the log, and errors of wrong ones', async () => {
    await using wrong = await TestEngine.start({
      image: false,
      netns: join(engine.directory, 'netns'),
      within: ['env', ...environment('wrong-p@ss')],
      flags: FLAGS,
    });
    const texts = [
      await textOf(wrong, `/images/create?fromImage=${PLAIN}/far&tag=1`),
      await textOf(wrong, `/images/create?fromImage=${TLS}/far&tag=2`),
      await textOf(wrong, `/images/create?fromSrc=http://${HOST}:5010/v1/x`),
      await textOf(wrong, `/build?remote=http://${HOST}:5010/v1/x`),
      await textOf(wrong, `/build?remote=http://${HOST}:5010/x.git`),
      (await wrong.get(`/images/search?term=${HOST}:5010/found`)).raw.toString(),
      await textOf(wrong, '/auth', { username: 'a', password: 'b', serveraddress: PLAIN }),
    ];
    for (const each of texts) assert.match(each, /"message"|"error"/);
    assert.match(texts[0]!, /407/);
    for (const each of [engine, wrong]) {
      texts.push((await each.get('/info')).raw.toString());
      texts.push((await each.get(`/events?since=1&until=${Math.floor(Date.now() / 1000) + 1}`)).raw.toString());
      texts.push(each.log);
    }

    assert.match(texts.join('\n'), /"HttpsProxy":"http:\/\/xxxxx:xxxxx@127\.0\.0\.1:5009"/);
    const wrongToo = Buffer.from(`${NAME}:wrong-p@ss`).toString('base64');
    for (const secret of ['-of-proxy', 'wrong-p', 'ali%20ce', 'ali ce', AUTHORIZATION.slice(6), wrongToo]) {
      assert.ok(!texts.join('\n').includes(secret), secret);
    }
  });
});
