import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';

import { TestEngine } from '@gantry/testing/test-engine.ts';

const PORT = 2375;
const BEHIND = 'GET /version HTTP/1.1\r\nHost: localhost\r\n\r\n';
const LENGTH = `Content-Length: ${BEHIND.length}`;
const PADDING = '<padding>';
const CHUNKED = 'Transfer-Encoding: chunked';

/** Sends bytes and the end, and prints all that comes back until the daemon closes the connection. */
const SEND = `
const { bytes } = JSON.parse(process.argv[1]);
const socket = require('node:net').connect({ host: '127.0.0.1', port: ${PORT} });
socket.on('error', () => undefined).on('close', () => process.exit()).pipe(process.stdout);
socket.end(Buffer.from(bytes.replace('${PADDING}', 'x'.repeat(1_100_000)), 'latin1'));
`;

function request(line: string, ...headers: string[]): string {
  return [line, 'Host: localhost', ...headers, '', ''].join('\r\n');
}

/** A body that one reader takes for a body, and another for a request. */
function ambiguous(...headers: string[]): string {
  return `${request('POST /containers/nope/start HTTP/1.1', ...headers)}${BEHIND}`;
}

/** Requests that two readers may take apart differently: their statuses in order. Never is one behind a refusal read. */
const CASES: readonly (readonly [name: string, bytes: string, statuses: string])[] = [
  ['two lengths', ambiguous('Content-Length: 0', LENGTH), '400'],
  ['two equal lengths', ambiguous('Content-Length: 0', 'Content-Length: 0'), '400'],
  ['a list of lengths', ambiguous('Content-Length: 0, 44'), '400'],
  ['a length with a sign', ambiguous('Content-Length: +0'), '400'],
  ['a negative length', ambiguous('Content-Length: -1'), '400'],
  ['a length beyond 64 bits', ambiguous('Content-Length: 99999999999999999999999'), '400'],
  ['a length in hexadecimal', ambiguous('Content-Length: 0x2c'), '400'],
  ['length and chunks', ambiguous(LENGTH, CHUNKED), '400'],
  ['chunks and length', ambiguous(CHUNKED, 'Content-Length: 0'), '400'],
  ['chunked by a later coding', ambiguous('Transfer-Encoding: chunked, identity'), '400'],
  ['chunked twice', ambiguous(CHUNKED, CHUNKED), '400'],
  ['a coding with other letters', ambiguous('Transfer-Encoding: \u000bchunked'), '400'],
  ['an unknown coding', ambiguous('Transfer-Encoding: xchunked'), '400'],
  ['a blank before the colon', ambiguous('Content-Length : 0'), '400'],
  ['a folded header', ambiguous('X-One: 1', ' Content-Length: 44'), '400'],
  ['a header without a colon', ambiguous('Content-Length'), '400'],
  ['lines that end with LF alone', 'GET /_ping HTTP/1.1\nHost: localhost\n\n', '400'],
  ['one line that ends with LF alone', 'GET /_ping HTTP/1.1\r\nHost: localhost\nX: 1\r\n\r\n', '400'],
  ['CR in a header', request('GET /_ping HTTP/1.1', 'X: 1\rContent-Length: 44'), '400'],
  ['NUL in a header', request('GET /_ping HTTP/1.1', 'X: 1\0'), '400'],
  [
    'a chunk with a bad length',
    `${request('POST /containers/create HTTP/1.1', 'Content-Type: application/json', CHUNKED)}zz\r\n`,
    '400',
  ],
  ['HTTP/0.9', 'GET /_ping\r\n', '400'],
  ['HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', ''],
  ['HTTP/3.7', request('GET /_ping HTTP/3.7'), '400'],
  ['a method of small letters', request('get /_ping HTTP/1.1'), '400'],
  ['CONNECT', `${request('CONNECT localhost:80 HTTP/1.1')}${BEHIND}`, ''],
  ['TRACE', request('TRACE /_ping HTTP/1.1', 'Connection: close'), '404'],
  ['the whole address', request('GET http://localhost/_ping HTTP/1.1', 'Connection: close'), '200'],
  ['an address without a path', request('GET http://localhost HTTP/1.1', 'Connection: close'), '404'],
  ['two hosts', request('GET /_ping HTTP/1.1', 'Host: example.com', 'Connection: close'), '400'],
  ['a body of a GET', `${request('GET /_ping HTTP/1.1', LENGTH)}${BEHIND}`, '200'],
  [
    'an upgrade with a body',
    `${request('GET /_ping HTTP/1.1', 'Connection: Upgrade', 'Upgrade: h2c', LENGTH)}${BEHIND}`,
    '200',
  ],
  ['pipelined requests', `${request('GET /_ping HTTP/1.1')}${BEHIND}`, '200 200'],
  ['one megabyte of a header', request('GET /_ping HTTP/1.1', `X: ${PADDING}`), '400'],
];

suite('requests that are not clear', { concurrency: false }, () => {
  let engine: TestEngine;
  before(async () => {
    engine = await TestEngine.start({ image: false, flags: [`--host=tcp://127.0.0.1:${PORT}`] });
  });
  after(async () => await engine[Symbol.asyncDispose]());

  test('are refused, or read as the one that they are', async () => {
    const answers = await Promise.all(
      CASES.map(async ([name, bytes]) => {
        const said = await engine.onHost([process.execPath, '-e', SEND, JSON.stringify({ bytes })], {
          timeout: 60_000,
        });
        return [name, (said.match(/HTTP\/1\.1 \d+/g) ?? []).map((head) => head.slice(9)).join(' ')];
      }),
    );

    assert.deepEqual(
      answers,
      CASES.map(([name, , statuses]) => [name, statuses]),
    );
  });
});
