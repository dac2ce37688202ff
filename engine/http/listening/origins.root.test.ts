import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';

import { TestEngine } from '@gantry/testing/test-engine.ts';

/** Sends requests from the daemon's own network namespace; prints their statuses, and 101 for an upgrade. */
const ASK = `
const [port, address, requests] = JSON.parse(process.argv[1]);
const { once } = require('node:events');
(async () => {
  const statuses = [];
  for (const { method = 'GET', path = '/_ping', headers } of requests) {
    const sent = require('node:http').request({ host: address, port, method, path, headers, agent: false });
    sent.end(method === 'POST' ? 'text' : undefined);
    const [response] = await Promise.race([once(sent, 'response'), once(sent, 'upgrade')]);
    statuses.push(response.statusCode);
    response.socket.destroy();
  }
  console.log(JSON.stringify(statuses));
})();
`;

type Sent = { method?: string; path?: string; headers: Record<string, string> };
type Case = readonly [what: string, sent: Sent, status: number];

const WEBSOCKET = {
  Connection: 'Upgrade',
  Upgrade: 'websocket',
  'Sec-WebSocket-Version': '13',
  'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==',
};
const EVIL = 'https://evil.example';
const attach = '/containers/quiet/attach/ws?stream=1&stdout=1';

const ON_LOOPBACK: readonly Case[] = [
  ['the address as the host', { headers: { Host: '127.0.0.1:2375' } }, 200],
  ['the address without a port', { headers: { Host: '127.0.0.1' } }, 200],
  ['an address of IPv6', { headers: { Host: '[::1]:2375' } }, 200],
  ['another address, as behind a tunnel', { headers: { Host: '192.0.2.1:9999' } }, 200],
  ['localhost', { headers: { Host: 'localhost:2375' } }, 200],
  ['a name below localhost, as docker sends it', { headers: { Host: 'api.moby.localhost' } }, 200],
  ['no name at all', { headers: { Host: '' } }, 200],
  ['a foreign name', { headers: { Host: 'evil.example:2375' } }, 403],
  ['a name that only looks like localhost', { headers: { Host: 'localhost.evil.example' } }, 403],
  ['a name that only looks like an address', { headers: { Host: '127.0.0.1.evil.example' } }, 403],
  ['the origin of the address itself', { headers: { Host: '127.0.0.1:2375', Origin: 'http://127.0.0.1:2375' } }, 200],
  ['the origin of a foreign page', { headers: { Host: '127.0.0.1:2375', Origin: EVIL } }, 403],
  ['the origin of another port', { headers: { Host: '127.0.0.1:2375', Origin: 'http://127.0.0.1:80' } }, 403],
  ['an origin that is kept secret', { headers: { Host: '127.0.0.1:2375', Origin: 'null' } }, 403],
  ['a WebSocket of a program', { path: attach, headers: { Host: '127.0.0.1:2375', ...WEBSOCKET } }, 101],
  ['a WebSocket of a page', { path: attach, headers: { Host: '127.0.0.1:2375', ...WEBSOCKET, Origin: EVIL } }, 403],
  [
    'a start by a page',
    {
      method: 'POST',
      path: '/containers/created/start',
      headers: { Host: '127.0.0.1:2375', 'Content-Type': 'text/plain', Origin: EVIL },
    },
    403,
  ],
  [
    'an import by a page',
    {
      method: 'POST',
      path: '/images/create?fromSrc=-&repo=evil',
      headers: { Host: '127.0.0.1:2375', 'Content-Type': 'text/plain', Origin: EVIL },
    },
    403,
  ],
  [
    "a browser's question before a request",
    { method: 'OPTIONS', path: '/containers/create', headers: { Host: '127.0.0.1:2375', Origin: EVIL } },
    403,
  ],
];

suite('foreign pages', { concurrency: false }, () => {
  let engine: TestEngine;
  before(async () => {
    const flags = ['--host=tcp://127.0.0.1:2375', '--host=tcp://0.0.0.0:2376', '--insecure-tcp'];
    engine = await TestEngine.start({ flags });
    await engine.run(['sleep', '1000'], { HostConfig: { NetworkMode: 'none' } }, 'quiet');
    await engine.create(['true'], {}, 'created');
    await engine.onHost(['ip', 'link', 'set', 'lo', 'up']);
    await engine.onHost(['ip', 'address', 'add', '192.0.2.7/32', 'dev', 'lo']);
  });
  after(async () => await engine[Symbol.asyncDispose]());

  async function statusesOf(cases: readonly Case[], address = '127.0.0.1', port = 2375): Promise<number[]> {
    const what = JSON.stringify([port, address, cases.map(([, sent]) => sent)]);
    return JSON.parse(await engine.onHost([process.execPath, '-e', ASK, what])) as number[];
  }

  test('over TCP without TLS foreign hosts and origins are refused', async () => {
    const statuses = await statusesOf(ON_LOOPBACK);

    for (const [i, [what, , expected]] of ON_LOOPBACK.entries()) assert.equal(statuses[i], expected, what);
    assert.equal((await engine.get('/images/evil/json')).status, 404);
  });

  test('on an address of the network the operator answers for the names, and pages stay outside', async () => {
    const cases: readonly Case[] = [
      ['a name', { headers: { Host: 'docker:2376' } }, 200],
      ['a page', { headers: { Host: 'docker:2376', Origin: EVIL } }, 403],
    ];

    assert.deepEqual(await statusesOf(cases, '192.0.2.7', 2376), [200, 403]);
  });

  test('on the unix socket no page can be', async () => {
    assert.equal((await engine.get('/_ping', { headers: { Host: 'docker', Origin: EVIL } })).status, 200);
  });
});

test('the origin that the operator has named is let in', async () => {
  const flags = ['--host=tcp://127.0.0.1:2375', `--api-cors-header=${EVIL}`];
  await using engine = await TestEngine.start({ image: false, flags });
  const headers = (origin: string) => ({ headers: { Host: '127.0.0.1:2375', Origin: origin } });

  const what = JSON.stringify([2375, '127.0.0.1', [headers(EVIL), headers('https://other.example')]]);
  const statuses = JSON.parse(await engine.onHost([process.execPath, '-e', ASK, what])) as number[];

  assert.deepEqual(statuses, [200, 403]);
});
