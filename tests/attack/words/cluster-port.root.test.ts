import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { promisify } from 'node:util';

import { ClusterHosts, type ClusterHost } from '@gantry/testing/cluster/hosts.ts';
import { internalWord } from '@gantry/testing/internal-words.ts';

/** Sends each text on a connection of its own, and prints the answers as a list of texts. */
const SEND = `
const [host, pair, texts] = JSON.parse(require('node:fs').readFileSync(0, 'utf8'));
const { connect } = require('node:tls');
const answers = texts.map((text) => new Promise((resolve) => {
  const socket = connect({ host, port: 2377, rejectUnauthorized: false, ...pair });
  let answer = '';
  socket.on('data', (bytes) => (answer += bytes)).on('error', () => undefined).on('close', () => resolve(answer));
  socket.end(text);
}));
Promise.all(answers).then((all) => console.log(JSON.stringify(all)));
`;

const PEM = '-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n';
const JUNK = ['{', '[', 'nul', '"', '{"a":1,}', '\u0000', '', '{}', '[]', 'null', '3', '['.repeat(10_000)];
const PATHS = ['/', '/%zz', '/v1/constructor', '/v1/ca', '/v1/session', '/v1/logs', '//', '*', 'https://[::1/'];
const ROUTES = ['certificates', 'peers', 'leave', 'ping', 'outage', 'data-key', 'write'];
const HEADS = [
  '\u0000\u0001\r\n\r\n',
  'GET / HTTP/9.9\r\n\r\n',
  'GET /v1/ca HTTP/1.1\nHost: x\n\n',
  'FOO / HTTP/1.1\r\n\r\n',
];
const UPGRADE = 'Connection: Upgrade\r\nUpgrade: gantry-session\r\nContent-Length: 0\r\n\r\n';

const post = (path: string, body: string): string =>
  `POST ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;

suite('answers of port 2377', { concurrency: false }, () => {
  let hosts: ClusterHosts;
  let [manager, worker]: ClusterHost[] = [];
  before(async () => {
    hosts = await ClusterHosts.cluster(1, 1);
    [manager, worker] = hosts.hosts;
  });
  after(async () => await hosts[Symbol.asyncDispose]());

  async function answersTo(texts: readonly string[], pair: object): Promise<string[]> {
    const sent = promisify(execFile)('nsenter', [`--net=${worker!.engine.netns}`, process.execPath, '-e', SEND]);
    sent.child.stdin!.end(JSON.stringify([manager!.ip, pair, texts]));
    return JSON.parse((await sent).stdout) as string[];
  }

  for (const who of ['a stranger', 'a worker']) {
    test(`have no words of the kernel and of parsers for ${who}`, async () => {
      const { Worker: token } = (await manager!.swarm()).JoinTokens;
      const file = readFileSync(join(worker!.engine.directory, 'data/cluster/member.json'), 'utf8');
      const { certificate: cert, key } = JSON.parse(file) as Record<string, string>;
      const keys = ['', 'x', PEM, key!, cert!, 'x'.repeat(10_000), 'é\u0000'];
      const wishes = keys.flatMap((publicKey) => [
        { publicKey, csr: '', token },
        { publicKey, csr: publicKey, token: 'SWMTKN-1-a-b' },
        { publicKey, csr: '' },
      ]);
      const texts = [
        ...HEADS,
        ...PATHS.flatMap((path) => [`GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`, post(path, '{}')]),
        ...ROUTES.flatMap((route) => JUNK.map((body) => post(`/v1/${route}`, body))),
        ...wishes.map((wish) => post('/v1/certificates', JSON.stringify(wish))),
        ...[
          '/v1/session',
          '/v1/logs?request={',
          '/v1/logs/publish?request=%zz',
          '/v1/logs/publish?request={}',
          '/x',
        ].map((path) => `POST ${path} HTTP/1.1\r\nHost: x\r\n${UPGRADE}`),
      ];

      const all: string[] = [];
      // A stranger has 32 connections at once.
      for (let at = 0; at < texts.length; at += 30) {
        all.push(...(await answersTo(texts.slice(at, at + 30), who === 'a worker' ? { cert, key } : {})));
      }

      for (const [index, answer] of all.entries()) {
        const [, text = ''] = answer.split('\r\n\r\n');
        assert.equal(internalWord(text), undefined, `${texts[index]!.slice(0, 300)}: ${text}`);
        assert.doesNotMatch(answer, /failed unexpectedly/, texts[index]!);
      }
      assert.ok(all.filter((answer) => /^HTTP\/1\.1 4\d\d /.test(answer)).length > 80, all.join('\n'));
    });
  }
});
