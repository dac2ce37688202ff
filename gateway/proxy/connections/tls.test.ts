import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import type { TLSSocket } from 'node:tls';

import { type Settings, TestGateway } from '@gantry/testing/gateway/test-gateway.ts';
import { TestUpstream } from '@gantry/testing/gateway/test-upstream.ts';

const folder = mkdtempSync(join(tmpdir(), 'gantry-tls-'));
after(() => rmSync(folder, { recursive: true }));
const upstream = await TestUpstream.start();
after(async () => await upstream[Symbol.asyncDispose]());

/** A certificate that vouches for itself. */
function certificate(name: string): { certFile: string; keyFile: string } {
  const [certFile, keyFile] = [join(folder, `${name}.pem`), join(folder, `${name}.key`)];
  const args = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '1'];
  const subject = ['-subj', `/CN=${name}`, '-addext', 'subjectAltName=IP:127.0.0.1'];
  execFileSync('openssl', [...args, ...subject, '-keyout', keyFile, '-out', certFile], { stdio: 'ignore' });
  return { certFile, keyFile };
}

const first = certificate('first');
const second = certificate('second');
const settings: Settings = { upstream: upstream.url, listen: ['tls:127.0.0.1:0', '127.0.0.1:0'], tls: first };

/** The status and headers of the answer, and whose certificate it was. */
async function ask(gateway: TestGateway, ca: string) {
  const outgoing = request(`${gateway.url}/user`, { ca: readFileSync(ca), agent: false }).end();
  const [incoming] = (await once(outgoing, 'response')) as [IncomingMessage];
  const { subject } = (incoming.socket as TLSSocket).getPeerCertificate();
  incoming.resume();
  await once(incoming, 'end');
  return { status: incoming.statusCode, used: incoming.headers['x-ratelimit-used'], name: subject.CN };
}

for (const workers of [1, 2]) {
  test(`TLS is served beside plain HTTP, with one count for both (${workers} workers)`, async () => {
    await using gateway = await TestGateway.start({ ...settings, workers });

    const answer = await ask(gateway, first.certFile);
    const plain = await fetch(`${gateway.addresses[1]}/user`);
    await plain.arrayBuffer();

    assert.match(gateway.url, /^https:/);
    assert.deepEqual(answer, { status: 200, used: '1', name: 'first' });
    assert.equal(plain.headers.get('x-ratelimit-used'), '2');
    const protocols = upstream.received.slice(-2).map(({ headers }) => headers['x-forwarded-proto']);
    assert.deepEqual(protocols, ['https', 'http']);
  });
}

test('a reload takes the new certificate, and keeps the old one where the new one is wrong', async () => {
  await using gateway = await TestGateway.start(settings);
  await gateway.reload({ ...settings, tls: { certFile: first.certFile, keyFile: second.keyFile } });
  const kept = await ask(gateway, first.certFile);

  const told = await gateway.reload({ ...settings, tls: second });
  const changed = await ask(gateway, second.certFile);

  assert.equal(kept.name, 'first');
  assert.equal(told.msg, 'the settings were reloaded');
  assert.equal(changed.name, 'second');
});

test('a client without TLS is closed, and a silent connection does not hold up the end', async () => {
  await using gateway = await TestGateway.start(settings);
  const { port } = new URL(gateway.url);
  const silent = connect(Number(port), '127.0.0.1');
  const plain = connect(Number(port), '127.0.0.1');
  plain.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
  await once(plain.resume(), 'close');
  const answer = await ask(gateway, first.certFile);

  gateway.signal('SIGTERM');
  const code = await gateway.exited;

  assert.equal(answer.status, 200);
  assert.equal(code, 0);
  silent.destroy();
});

test('a certificate that cannot be used is told by --check-config and at the start', async () => {
  writeFileSync(join(folder, 'broken.pem'), 'no certificate');
  const broken = { certFile: join(folder, 'broken.pem'), keyFile: first.keyFile };

  for (const tls of [broken, { ...first, keyFile: '/nowhere' }, undefined]) {
    const started = await TestGateway.start({ ...settings, tls }).then(
      () => 'started',
      (error: unknown) => String(error),
    );
    assert.match(started, tls === undefined ? /listen\.0: it needs tls\.certFile/ : /gateway\.yaml:\d+:\d+: tls: /);
  }
});
