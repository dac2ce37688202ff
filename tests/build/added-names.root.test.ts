import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';

import { endProcess } from '@gantry/testing/daemon-process.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

import { build, contextOf } from './compared.ts';

/** Answers each request; the query is the name in its header. */
const SERVER = `
  require('node:http').createServer(({ url, headers }, response) => {
    const name = url.split('?')[1];
    if (name !== undefined) response.setHeader('Content-Disposition', 'attachment; filename="' + name + '"');
    response.end(headers.authorization ?? 'content');
  }).listen(8080, '127.0.0.1', () => process.send('listening'));
`;
const SERVED = 'http://127.0.0.1:8080';

/** Addresses, and the files that ADD makes of them. */
const added: readonly [string, string][] = [
  ['/plain', '/got/plain'],
  ['/d/a%20b%2Bc', '/got/a b+c'],
  ['/d/a%2Fb', '/got/b'],
  ['/%C3%A9', '/got/é'],
  ['/a%0Ab', '/got/a\nb'],
  ['/a*%5B', '/got/a*['],
  ['/%5Ba%5D%5C', '/got/[a]\\'],
  [`/${'n'.repeat(255)}`, `/got/${'n'.repeat(255)}`],
  ['/?named', '/got/named'],
  ['/?../../other', '/got/other'],
];

/** Addresses that are refused, with the reason. */
const refused: readonly [string, RegExp][] = [
  [`${SERVED}/%zz`, /has an invalid escape in "%zz"/],
  [`${SERVED}/%`, /has an invalid escape in "%"/],
  [`${SERVED}/%ff`, /has a file name that is not UTF-8/],
  [`${SERVED}/%00`, /has a file name with a NUL character/],
  [`${SERVED}/${'n'.repeat(256)}`, /has a file name of more than 255 bytes/],
  [`${SERVED}/${'%C3%A9'.repeat(128)}`, /has a file name of more than 255 bytes/],
  [`${SERVED}/${'n'.repeat(60_000)}`, /has a file name of more than 255 bytes/],
  [`${SERVED}/?${'n'.repeat(256)}`, /has a file name of more than 255 bytes/],
  [`${SERVED}/..`, /cannot determine filename/],
  [`${SERVED}/%2e%2e`, /cannot determine filename/],
  [`${SERVED}/`, /cannot determine filename/],
  [`${SERVED}/?..`, /cannot determine filename/],
  ['http://user:%zz@127.0.0.1:8080/x', /the user of http:\/\/127\.0\.0\.1:8080\/x has an invalid escape/],
  ['http://%zz/x', /is no address/],
  ['http://127.0.0.1:99999/x', /is no address/],
  ['http://', /is no address/],
  [`http://${'n'.repeat(300)}/x`, /is no address of a web server|neither/],
];

suite('ADD of an address', { concurrency: false }, () => {
  let engine: TestEngine;
  let server: ChildProcess;

  before(async () => {
    engine = await TestEngine.start({ flags: ['--bridge=none'] });
    const words = [`--net=${join(engine.directory, 'netns')}`, process.execPath, '-e', SERVER];
    server = spawn('nsenter', words, { stdio: ['ignore', 'ignore', 'ignore', 'ipc'] });
    await once(server, 'message');
  });
  after(async () => {
    await endProcess(server, 'SIGKILL');
    await engine[Symbol.asyncDispose]();
  });

  async function said(address: string, then: string): Promise<string> {
    const file = `FROM busybox\nADD ["${address.replaceAll('\\', '\\\\')}", "/got/"]\n${then}`;
    const { lines, message } = await build(engine, 'networkmode=none&forcerm=1', contextOf({ Buildfile: file }));
    return message ?? lines.map(({ stream = '', error = '' }) => stream + error).join('');
  }

  for (const [path, file] of added) {
    test(`${path.slice(0, 40)} is the file ${file.slice(0, 40)}`, async () => {
      const output = await said(`${SERVED}${path}`, 'RUN for file in /got/*; do echo "$file"; done');

      assert.ok(output.includes(`\n${file}\n`), output);
    });
  }

  test('name and password of an address are sent as their bytes', async () => {
    const output = await said('http://a%C3%A9:%ff%3A@127.0.0.1:8080/x', 'RUN cat /got/x');

    const sent = Buffer.concat([Buffer.from('aé:'), Buffer.from([0xff]), Buffer.from(':')]).toString('base64');
    assert.ok(output.includes(`Basic ${sent}`), output);
  });

  for (const [address, refusal] of refused) {
    test(`${address.slice(0, 60)} (${address.length} characters) is refused`, async () => {
      const output = await said(address, '');

      assert.match(output, refusal);
      assert.doesNotMatch(output, /ENAMETOOLONG|EINVAL|ERR_|URI malformed|Invalid URL/);
      assert.ok(!output.includes(engine.directory), output);
    });
  }
});
