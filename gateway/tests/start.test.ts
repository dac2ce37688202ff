import assert from 'node:assert/strict';
import { once } from 'node:events';
import { statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';

import { runGatewayCommand, sha256, TestGateway } from '@gantry/testing/gateway/test-gateway.ts';
import { TestUpstream } from '@gantry/testing/gateway/test-upstream.ts';

const identities = {
  users: { alice: {} },
  tokens: [{ sha256: sha256('token-of-alice'), user: 'alice' }],
} as const;

test('an upstream is all that a gateway needs', async () => {
  await using upstream = await TestUpstream.start();
  await using gateway = await TestGateway.start({}, ['--upstream', upstream.url, '--listen', '127.0.0.1:0']);

  const answer = await gateway.request('/user');

  assert.equal(answer.status, 200);
  assert.deepEqual(JSON.parse(answer.body), { method: 'GET', url: '/user', body: '' });
  assert.equal(answer.headers['x-ratelimit-limit'], '60');
  assert.equal(answer.headers['x-ratelimit-remaining'], '59');
});

test('a gateway listens on a Unix socket that everybody may use', async () => {
  await using upstream = await TestUpstream.start();
  await using gateway = await TestGateway.start({ upstream: upstream.url, listen: 'unix:{folder}/gateway.sock' });

  const answer = await gateway.request('/user');

  assert.equal(answer.status, 200);
  assert.equal(answer.headers['x-ratelimit-used'], '1');
  assert.equal(statSync(gateway.url.slice('unix:'.length)).mode & 0o777, 0o666);
});

test('a gateway that listens on several addresses has one count', async () => {
  await using upstream = await TestUpstream.start();
  await using gateway = await TestGateway.start({ upstream: upstream.url, listen: ['127.0.0.1:0', '127.0.0.1:0'] });

  await gateway.request('/user');
  const second = await fetch(`${gateway.addresses[1]}/user`);

  assert.notEqual(gateway.addresses[0], gateway.addresses[1]);
  assert.equal(second.headers.get('x-ratelimit-used'), '2');
});

test('--check-config says OK and ends with 0, or names the problem and ends with 1', async () => {
  await using gateway = await TestGateway.start({ upstream: 'http://127.0.0.1:1' });
  const bad = join(gateway.folder, 'bad.yaml');
  writeFileSync(bad, 'upstream: http://127.0.0.1:1\nlissen: 80\ntrustProxy: [x]\n');

  const [good, wrong, missing] = await Promise.all([
    runGatewayCommand('--check-config', gateway.file),
    runGatewayCommand('--check-config', bad),
    runGatewayCommand('--check-config', join(gateway.folder, 'missing.yaml')),
  ]);

  assert.deepEqual(good, { code: 0, output: `${gateway.file}: OK\n` });
  assert.deepEqual(wrong, {
    code: 1,
    output:
      `gantry gateway: ${bad}:2:1: lissen: unknown key\n` +
      `gantry gateway: ${bad}:3:14: trustProxy.0: an address or CIDR range is expected, not "x"\n`,
  });
  assert.equal(missing.code, 1);
  assert.match(missing.output, /missing\.yaml: no such file or directory\n$/);
});

test('a gateway does not start with wrong settings, and says why without a stack', async () => {
  const [nothing, wrongFlag, taken] = await Promise.all([
    runGatewayCommand(),
    runGatewayCommand('--upstream', 'localhost:3000'),
    runGatewayCommand('--banana'),
  ]);

  assert.deepEqual(nothing, { code: 1, output: 'gantry gateway: upstream: is missing\n' });
  assert.equal(wrongFlag.code, 1);
  assert.match(wrongFlag.output, /^gantry gateway: --upstream: [^\n]*"localhost:3000"\n$/);
  assert.equal(taken.code, 125);
  assert.match(taken.output, /^gantry gateway: Unknown option '--banana'[^\n]*\n$/);
});

test('a port that is taken is said in one line', async () => {
  await using upstream = await TestUpstream.start();

  const { code, output } = await runGatewayCommand(
    ...['--upstream', upstream.url, '--listen', `127.0.0.1:${upstream.port}`],
  );

  assert.equal(code, 1);
  assert.match(output, /gantry gateway: 127\.0\.0\.1:\d+: address already in use\n$/);
});

test('SIGHUP puts other limits in force, and counts stay', async () => {
  await using upstream = await TestUpstream.start();
  const settings = { upstream: upstream.url, identities };
  await using gateway = await TestGateway.start(settings);
  const before = await gateway.request('/user', { token: 'token-of-alice' });

  const said = await gateway.reload({ ...settings, limits: { user: 2 } });
  const second = await gateway.request('/user', { token: 'token-of-alice' });
  const third = await gateway.request('/user', { token: 'token-of-alice' });

  assert.equal(said.msg, 'the settings were reloaded');
  assert.equal(before.headers['x-ratelimit-remaining'], '4999');
  assert.deepEqual([second.status, second.headers['x-ratelimit-remaining']], [200, '0']);
  assert.deepEqual([third.status, third.headers['x-ratelimit-limit']], [403, '2']);
  assert.equal(second.headers['x-ratelimit-reset'], before.headers['x-ratelimit-reset']);
});

test('SIGHUP takes in tokens, and takes them away', async () => {
  await using upstream = await TestUpstream.start();
  const settings = { upstream: upstream.url, identities };
  await using gateway = await TestGateway.start(settings);
  const tokens = [{ sha256: sha256('another-token'), user: 'alice' }] as const;

  await gateway.reload({ ...settings, identities: { ...identities, tokens } });
  const old = await gateway.request('/user', { token: 'token-of-alice' });
  const added = await gateway.request('/user', { token: 'another-token' });

  assert.deepEqual([old.status, added.status], [401, 200]);
});

test('SIGHUP with another upstream sends new requests there, and lets old ones end', async () => {
  await using one = await TestUpstream.start();
  await using other = await TestUpstream.start();
  const held = one.hold('/slow');
  await using gateway = await TestGateway.start({ upstream: one.url });
  const slow = gateway.request('/slow');
  await one.until(() => held.waiting() === 1);

  await gateway.reload({ upstream: other.url });
  await gateway.request('/user');
  held.release();

  assert.equal((await slow).body, 'released');
  assert.equal(other.count('/user'), 1);
  assert.equal(one.count('/user'), 0);
});

const bad = [
  ['lissen: 1', ['lissen: unknown key']],
  ['limits: [', ['']],
  ['introspection: { url: "http://127.0.0.1:1/", authorizationFile: /nowhere }', ['no such file']],
] as const;
for (const [line, expected] of bad) {
  test(`SIGHUP with a bad file leaves the old one in force and says why: ${line}`, async () => {
    await using upstream = await TestUpstream.start();
    await using gateway = await TestGateway.start({ upstream: upstream.url, limits: { anonymous: 7 } });

    const said = await gateway.reload(`upstream: ${upstream.url}\n${line}\n`);
    const answer = await gateway.request('/user');

    assert.equal(said.msg, 'the settings were not reloaded: the old ones stay in force');
    const problems = said['problems'] as string[];
    assert.equal(problems.length, expected.length);
    assert.match(problems[0] ?? '', new RegExp(`^${gateway.file}:\\d+:\\d+: .*${expected[0]}`));
    assert.equal(answer.headers['x-ratelimit-limit'], '7');
  });
}

test('SIGHUP does not end a gateway that is still starting', async () => {
  await using upstream = await TestUpstream.start();
  await using gateway = await TestGateway.start({ upstream: upstream.url });

  gateway.signal('SIGHUP'); // at once after its first line
  gateway.signal('SIGHUP');
  await gateway.logged('the settings were reloaded');

  assert.equal((await gateway.request('/user')).status, 200);
});

test('SIGHUP says which settings wait for the next start', async () => {
  await using upstream = await TestUpstream.start();
  await using gateway = await TestGateway.start({ upstream: upstream.url });

  await gateway.reload({ upstream: upstream.url, listen: '127.0.0.1:9', limits: { anonymous: 9 } });
  const answer = await gateway.request('/user');
  const said = await gateway.logged('these settings change at the next start only');

  assert.deepEqual(said['needRestart'], ['listen']);
  assert.equal(answer.headers['x-ratelimit-limit'], '9');
});

test('SIGTERM lets a slow answer end, takes no connection any more, and ends with 0', async () => {
  await using upstream = await TestUpstream.start();
  const held = upstream.hold('/slow');
  await using gateway = await TestGateway.start({ upstream: upstream.url });
  const slow = gateway.request('/slow');
  await upstream.until(() => held.waiting() === 1);

  gateway.signal('SIGTERM');
  await gateway.logged('ending: requests under way are answered first');
  await untilRefused(gateway);
  held.release();
  const answer = await slow;

  assert.deepEqual([answer.status, answer.body, answer.headers['connection']], [200, 'released', 'close']);
  assert.equal(await gateway.exited, 0);
});

test('SIGTERM does not wait for idle connections', async () => {
  await using upstream = await TestUpstream.start();
  await using gateway = await TestGateway.start({ upstream: upstream.url });
  await gateway.request('/user'); // its connection stays open
  const silent = gateway.connect();
  await once(silent, 'connect');
  await gateway.request('/user', { from: '127.0.0.3' }); // the gateway has seen the silent one by now

  gateway.signal('SIGTERM');

  assert.equal(await gateway.exited, 0);
  silent.destroy();
});

test('SIGTERM ends a gateway without a reader of its log', async () => {
  await using upstream = await TestUpstream.start();
  await using gateway = await TestGateway.start({ upstream: upstream.url, log: { requests: true } });
  gateway.loseReader();

  assert.equal((await gateway.request('/user')).status, 200);
  gateway.signal('SIGTERM');

  assert.equal(await gateway.exited, 0);
});

test('the log of an ended gateway has its last line', async () => {
  await using upstream = await TestUpstream.start();
  await using gateway = await TestGateway.start({ upstream: upstream.url });

  gateway.signal('SIGTERM');
  await gateway.exited;

  assert.equal(gateway.log.at(-1)?.['msg'], 'ended');
});

test('a request that does not end is cut off when the time for draining is over', async () => {
  await using upstream = await TestUpstream.start();
  const held = upstream.hold('/slow');
  await using gateway = await TestGateway.start({ upstream: upstream.url, timeouts: { drainMs: 200 } });
  const slow = gateway.request('/slow').then(
    () => 'answered',
    () => 'cut off',
  );
  await upstream.until(() => held.waiting() === 1);

  gateway.signal('SIGTERM');

  assert.equal(await gateway.exited, 0);
  assert.equal(await slow, 'cut off');
});

test('a second SIGTERM ends at once', async () => {
  await using upstream = await TestUpstream.start();
  const held = upstream.hold('/slow');
  await using gateway = await TestGateway.start({ upstream: upstream.url });
  const slow = gateway.request('/slow').catch(() => undefined);
  await upstream.until(() => held.waiting() === 1);

  gateway.signal('SIGTERM');
  await gateway.logged('ending: requests under way are answered first');
  gateway.signal('SIGTERM');

  assert.equal(await gateway.exited, 1);
  await slow;
});

test('a client that asks on while the gateway drains is told that the connection ends', async () => {
  await using upstream = await TestUpstream.start();
  const held = upstream.hold('/slow');
  await using gateway = await TestGateway.start({ upstream: upstream.url });
  const socket = gateway.connect();
  socket.write('GET /slow HTTP/1.1\r\nhost: x\r\n\r\n');
  await upstream.until(() => held.waiting() === 1);
  gateway.signal('SIGTERM');
  await gateway.logged('ending: requests under way are answered first');

  held.release();
  const answers = await text(socket);

  assert.match(answers, /^HTTP\/1\.1 200 OK\r\n[^]*\r\nconnection: close\r\n/i);
  assert.equal(await gateway.exited, 0);
});

/** Connects until that is refused: the listener closes a moment after the end is logged. */
async function untilRefused(gateway: TestGateway): Promise<void> {
  for (;;) {
    const socket = gateway.connect();
    const outcome = await once(socket, 'connect').catch((error: NodeJS.ErrnoException) => error.code);
    socket.destroy();
    if (outcome === 'ECONNREFUSED') return;
  }
}
