import assert from 'node:assert/strict';
import { lookup } from 'node:dns/promises';
import { test } from 'node:test';

import { reasonOf, refusalOf } from './errors.ts';

const ANSWER = { status: 401, statusText: 'Unauthorized', challenge: undefined };

test('a code has the text of the registry, else its own; names that objects have are codes as others', () => {
  const texts = ['DENIED', 'NAME_UNKNOWN', 'constructor', '__proto__'].map(
    (code) => refusalOf({ ...ANSWER, body: JSON.stringify({ errors: [{ code }] }) }).message,
  );

  assert.deepEqual(texts, [
    'denied: requested access to the resource is denied',
    'name unknown: name unknown',
    'constructor: constructor',
    '  proto  :   proto  ',
  ]);
});

const serverErrors = [
  ['{"errors":[{"code":"UNAVAILABLE","message":"no tokens\\n now"}]}', ': no tokens now'],
  ['{"details":"over capacity"}', ': over capacity'],
  ['{"errors":[]}', ''],
  ['{"errors":[{"code":"UNKNOWN","message":7}]}', ''],
  ['the database is on fire\n', ': the database is on fire'],
  ['<html><body>Bad Gateway</body></html>', ''],
  ['x'.repeat(300), ''],
  ['', ''],
] as const;

for (const [body, reason] of serverErrors) {
  test(`a server error with the body ${JSON.stringify(body.slice(0, 50))} is told with ${reason || 'its status alone'}`, () => {
    const { message } = refusalOf({ status: 503, statusText: 'Service Unavailable', body, challenge: undefined });

    assert.equal(message, `received unexpected HTTP status: 503 Service Unavailable${reason}`);
  });
}

test('a host with a name that is too long is unknown', async () => {
  const host = 'a'.repeat(300);
  const failure: unknown = await lookup(host).catch((error: unknown) => error);

  assert.equal(reasonOf(failure, new URL('http://x.test')), 'dial tcp: lookup x.test: no such host');
});

test('the error of a challenge counts before the body; one that is not known does not', () => {
  const [known, unknown] = ['insufficient_scope', 'constructor'].map(
    (error) => refusalOf({ ...ANSWER, body: '', challenge: { error } }).message,
  );

  assert.deepEqual(
    [known, unknown],
    ['denied: requested access to the resource is denied', 'unauthorized: authentication required'],
  );
});
