import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempDisposableSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import { systemClock } from '../lib/clock.ts';
import { findPlugin } from './find.ts';
import { Plugins } from './plugins.ts';

test('a certificate of a plugin counts, but for InsecureSkipVerify, and failures are told', async () => {
  using folder = mkdtempDisposableSync(join(tmpdir(), 'gantry-plugins-'));
  const file = (name: string): string => join(folder.path, name);
  const openssl = (...words: string[]): void => void execFileSync('openssl', words, { stdio: 'ignore' });
  for (const name of ['good', 'other', 'old']) {
    const key = ['-newkey', 'rsa:2048', '-nodes', '-keyout', file(`${name}.key`), '-subj', '/CN=plugin'];
    openssl('req', ...key, '-out', file(`${name}.csr`));
    writeFileSync(file('names'), 'subjectAltName=IP:127.0.0.1\n');
    const signed = ['-in', file(`${name}.csr`), '-signkey', file(`${name}.key`), '-out', file(`${name}.pem`)];
    openssl('x509', '-req', ...signed, '-days', name === 'old' ? '-1' : '30', '-extfile', file('names'));
  }
  const cases: [certificate: string, tls: object, told: RegExp | undefined][] = [
    ['good', { CAFile: file('good.pem') }, undefined],
    ['good', { InsecureSkipVerify: true }, undefined],
    ['old', { InsecureSkipVerify: true }, undefined],
    ['good', {}, /self-signed certificate/],
    ['good', { CAFile: file('other.pem') }, /self-signed certificate/],
    ['old', { CAFile: file('old.pem') }, /certificate has expired/],
    ['good', { CAFile: file('none.pem') }, /the file .*none\.pem of its TLSConfig cannot be read/],
    ['good', { CAFile: file('good.pem'), CertFile: file('none.pem') }, /none\.pem of its TLSConfig cannot be read/],
  ];
  for (const [certificate, tls, told] of cases) {
    const identity = { cert: readFileSync(file(`${certificate}.pem`)), key: readFileSync(file(`${certificate}.key`)) };
    const server = createServer(identity, (_request, response) => response.end('{"Implements":["authz"]}'));
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const { port } = server.address() as AddressInfo;
    writeFileSync(file('a.json'), JSON.stringify({ Addr: `https://127.0.0.1:${port}`, TLSConfig: tls }));

    const got = new Plugins(systemClock, [folder.path]).get('a', 'authz', { patienceMs: 0 });

    if (told === undefined) assert.deepEqual((await got).implements, ['authz']);
    else await assert.rejects(got, { kind: 'failed', message: told });
    server.closeAllConnections();
    server.close();
  }
});

test('a file of root may name each socket of the host, also by a path with ..', () => {
  using folder = mkdtempDisposableSync(join(tmpdir(), 'gantry-plugins-'));
  for (const path of ['/run/docker.sock', '/run/x/../docker.sock']) {
    writeFileSync(join(folder.path, 'a.json'), JSON.stringify({ Addr: `unix://${path}` }));

    assert.deepEqual(findPlugin([folder.path], 'a'), { kind: 'unix', socketPath: '/run/docker.sock' });
  }
});
