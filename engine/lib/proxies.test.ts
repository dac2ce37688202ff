import assert from 'node:assert/strict';
import { test } from 'node:test';

import { proxyFor, shownProxy } from './proxies.ts';

const PROXY = 'http://proxy:3128';

const direct: readonly [string, string][] = [
  ['http://localhost:5000/', ''],
  ['http://127.3.2.1/', ''],
  ['http://[::1]:80/', ''],
  ['http://a.test/', '*'],
  ['http://a.test/', 'b.test, a.test'],
  ['http://sub.a.test/', 'a.test'],
  ['http://sub.a.test/', '.a.test'],
  ['http://sub.a.test/', '*.a.test'],
  ['http://A.TEST/', 'a.Test'],
  ['http://a.test:5000/', 'a.test:5000'],
  ['http://a.test/', 'a.test:80'],
  ['https://a.test/', 'a.test:443'],
  ['http://192.0.2.7:5000/', '192.0.2.7'],
  ['http://192.0.2.7:5000/', '192.0.2.7:5000'],
  ['http://192.0.2.7:5000/', '192.0.2.0/24'],
  ['http://[2001:db8::7]:5000/', '2001:db8::/32'],
  ['http://[2001:db8::7]:5000/', '[2001:db8::7]:5000'],
];
for (const [url, none] of direct) {
  test(`${url} is asked directly with NO_PROXY=${none}`, () => {
    const environment = { HTTP_PROXY: PROXY, HTTPS_PROXY: PROXY, NO_PROXY: none };

    assert.equal(proxyFor(new URL(url), environment), undefined);
  });
}

const proxied: readonly [string, string][] = [
  ['http://a.test/', ''],
  ['https://a.test/', 'b.test'],
  ['http://a.test/', '.a.test'],
  ['http://ba.test/', 'a.test'],
  ['http://a.test:5000/', 'a.test:80'],
  ['http://192.0.2.7/', '192.0.3.0/24'],
  ['http://192.0.2.7/', '192.0.2.0/240'],
  ['http://[2001:db8::7]/', '192.0.2.0/24,::1'],
];
for (const [url, none] of proxied) {
  test(`${url} is asked by the proxy with NO_PROXY=${none}`, () => {
    const environment = { http_proxy: PROXY, HTTPS_PROXY: PROXY, no_proxy: none };

    assert.equal(proxyFor(new URL(url), environment)?.host, 'proxy:3128');
  });
}

test('each scheme has its own variable, and the one in capitals goes first', () => {
  const environment = { HTTP_PROXY: 'one:1', http_proxy: 'two:2', https_proxy: 'user:p%40ss@three:3' };

  assert.equal(proxyFor(new URL('http://a.test/'), environment)?.href, 'http://one:1/');
  assert.equal(proxyFor(new URL('https://a.test/'), environment)?.href, 'http://user:p%40ss@three:3/');
  assert.equal(proxyFor(new URL('https://a.test/'), { HTTP_PROXY: 'one:1' }), undefined);
});

test('a value that is no address is refused without its text', () => {
  assert.throws(() => proxyFor(new URL('http://a.test/'), { HTTP_PROXY: 'alice:secret@:x' }), {
    kind: 'failed',
    message: "the environment's HTTP_PROXY is not an address of a proxy",
  });
});

const shown: readonly [string, string][] = [
  ['', ''],
  ['http://proxy:3128', 'http://proxy:3128'],
  ['proxy:3128', 'proxy:3128'],
  ['http://alice:secret@proxy:3128/', 'http://xxxxx:xxxxx@proxy:3128/'],
  ['alice:secret@proxy:3128', 'xxxxx:xxxxx@proxy:3128'],
  ['http://alice@proxy', 'http://xxxxx:xxxxx@proxy'],
  ['http://alice:se@cret@proxy', 'http://xxxxx:xxxxx@proxy'],
  ['alice:secret@:x', 'xxxxx:xxxxx@:x'],
];
for (const [value, text] of shown) {
  test(`${JSON.stringify(value)} is shown as ${JSON.stringify(text)}`, () => assert.equal(shownProxy(value), text));
}
