import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { after, before, suite, test } from 'node:test';

import type { Inspect } from '@gantry/engine/containers/schema.ts';
import { Session } from '@gantry/testing/streams/session.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

suite('requests as clients really send them', { concurrency: false }, () => {
  let engine: TestEngine;
  before(async () => {
    engine = await TestEngine.start();
  });
  after(async () => await engine[Symbol.asyncDispose]());

  /** Sends bytes as they are; what comes back is kept. */
  async function send(...lines: string[]): Promise<Session> {
    const socket = connect({ path: engine.socketPath, allowHalfOpen: true });
    await once(socket, 'connect');
    socket.write(lines.join('\r\n'));
    return new Session(socket);
  }

  async function answerTo(...lines: string[]): Promise<string> {
    const session = await send(...lines);
    session.socket.end();
    await session.ended;
    return session.text;
  }

  test('keys of a body match without case, at every depth', async () => {
    const { body, status } = await engine.post<{ Id: string }>('/containers/create', {
      image: 'busybox',
      cmd: ['true'],
      env: ['A=1'],
      hostname: 'lower',
      labels: { Key: 'a', key: 'b' },
      hostConfig: {
        binds: ['/tmp:/t'],
        ULIMITS: [{ name: 'core', soft: 1, hard: 2 }],
        portbindings: { '80/tcp': [{ hostport: '8080' }] },
      },
    });

    assert.equal(status, 201);
    const { Config, HostConfig } = (await engine.get<Inspect>(`/containers/${body.Id}/json`)).body;
    assert.deepEqual([Config.Hostname, Config.Env?.includes('A=1')], ['lower', true]);
    assert.deepEqual(Config.Labels, { Key: 'a', key: 'b' });
    assert.deepEqual(HostConfig.Binds, ['/tmp:/t']);
    assert.deepEqual(HostConfig.Ulimits, [{ Name: 'core', Soft: 1, Hard: 2 }]);
    assert.deepEqual(HostConfig.PortBindings, { '80/tcp': [{ HostIp: '', HostPort: '8080' }] });
  });

  const unbounded: [string, string, RegExp][] = [
    ['7 MB of brackets', '['.repeat(7_000_000), /^the body is refused: it is nested deeper than 100 levels$/],
    [
      '100,000 objects in each other',
      `${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}`,
      /nested deeper than 100 levels$/,
    ],
    ['a million values', `{"Env":[${'"",'.repeat(1_000_000)}""]}`, /it has more than 100000 values$/],
  ];
  for (const [text, body, refusal] of unbounded) {
    test(`a body of ${text} is refused`, async () => {
      const headers = { 'Content-Type': 'application/json' };

      const answer = await engine.post<{ message: string }>('/containers/create', Buffer.from(body), { headers });

      assert.equal(answer.status, 400);
      assert.match(answer.body.message, refusal);
    });
  }

  test('the detach keys of docker-py detach', async () => {
    const id = await engine.run(['sleep', '1000']);
    const exec = { Cmd: ['cat'], AttachStdin: true, AttachStdout: true, Tty: true, detachKeys: 'ctrl-x' };
    const { body } = await engine.post<{ Id: string }>(`/containers/${id}/exec`, exec);
    const session = new Session((await engine.hijack(`/exec/${body.Id}/start`, { body: { Tty: true } })).socket);

    session.type('\u0018');
    await session.ended;

    assert.equal((await engine.get<{ Running: boolean }>(`/exec/${body.Id}/json`)).body.Running, true);
  });

  test('a content type counts only where JSON is read', async () => {
    const id = await engine.create(['sleep', '1000']);
    const ask = async (path: string, type: string, body: string): Promise<string> =>
      await answerTo(
        `POST ${path} HTTP/1.1`,
        'Host: x',
        `Content-Type:${type}`,
        `Content-Length: ${body.length}`,
        '',
        body,
      );

    const started = await ask(`/containers/${id}/start`, '', '');
    const stopped = await ask(`/containers/${id}/stop?t=0`, ' malformed', '');
    const created = await ask('/containers/create', ' malformed', '{}');

    assert.match(started, /^HTTP\/1\.1 204 /);
    assert.match(stopped, /^HTTP\/1\.1 204 /);
    assert.match(created, /^HTTP\/1\.1 400 [^]*Content-Type specified \(malformed\) must be 'application\/json'/);
  });

  test('a request of HTTP/1.1 without Host is refused as every other, one of HTTP/1.0 needs none', async () => {
    const newer = await answerTo('GET /_ping HTTP/1.1', '', '');
    const older = await answerTo('GET /_ping HTTP/1.0', '', '');

    assert.match(newer, /^HTTP\/1\.1 400 [^]*\{"message":"missing Host header"\}$/);
    assert.match(older, /^HTTP\/1\.1 200 [^]*OK$/);
  });

  test('a client that breaks off its request is not a failure of the daemon', async () => {
    for (const path of ['/containers/create', '/images/load', '/images/create?fromSrc=-']) {
      const type = path === '/containers/create' ? 'application/json' : 'application/x-tar';
      const broken = await send(
        `POST ${path} HTTP/1.1`,
        'Host: x',
        `Content-Type: ${type}`,
        'Content-Length: 99',
        '',
        '{',
      );
      await engine.get('/_ping'); // behind it
      broken.socket.destroy();
    }
    await engine.get('/containers/json');

    assert.doesNotMatch(engine.log, /failed unexpectedly/);
  });

  test('the size of an exec is set with 201 under a version, with 200 without one', async () => {
    const id = await engine.run(['sleep', '1000']);
    const { body } = await engine.post<{ Id: string }>(`/containers/${id}/exec`, { Cmd: ['cat'], Tty: true });
    const resize = async (prefix: string): Promise<string> =>
      await answerTo(
        `POST ${prefix}/exec/${body.Id}/resize?h=20&w=60 HTTP/1.1`,
        'Host: x',
        'Content-Length: 0',
        '',
        '',
      );

    assert.match(await resize('/v1.24'), /^HTTP\/1\.1 201 /);
    assert.match(await resize('/v1.12'), /^HTTP\/1\.1 201 /);
    assert.match(await resize(''), /^HTTP\/1\.1 200 /);
  });

  test('a request for an upgrade that no route has is answered, and so are those behind it', async () => {
    const ping = ['GET /_ping HTTP/1.1', 'Host: x'];
    const h2c = [...ping, 'Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABk', '', ''];
    const last = [...ping, 'Connection: close', '', ''];

    const text = await answerTo(`${h2c.join('\r\n')}${h2c.join('\r\n')}${last.join('\r\n')}`);

    assert.deepEqual(
      text.match(/HTTP\/1\.1 \d+/g),
      [200, 200, 200].map((status) => `HTTP/1.1 ${status}`),
    );
  });

  test('a large answer to a request for an upgrade is whole', async () => {
    const whole = await engine.get('/images/busybox/get');

    const text = await answerTo(
      'GET /images/busybox/get HTTP/1.1',
      'Host: x',
      'Connection: Upgrade',
      'Upgrade: h2c',
      '',
      '',
    );

    assert.ok(text.length > whole.raw.length / 2 && text.endsWith('0\r\n\r\n'), String(text.length));
  });

  test('a stream begins after the answers to the requests before it', async () => {
    const id = await engine.run(['sh', '-c', 'cat; echo over'], { OpenStdin: true, StdinOnce: true });

    const text = await answerTo(
      'GET /images/busybox/history HTTP/1.1',
      'Host: x',
      '',
      `POST /containers/${id}/attach?stream=1&stdin=1&stdout=1 HTTP/1.1`,
      'Host: x',
      'Connection: Upgrade',
      'Upgrade: tcp',
      '',
      'typed\n',
    );

    assert.match(text, /^HTTP\/1\.1 200 OK\r\n[^]*\]HTTP\/1\.1 101 UPGRADED\r\n[^]*typed\n[^]*over\n$/);
  });
});
