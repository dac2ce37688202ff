import assert from 'node:assert/strict';
import { test } from 'node:test';

import { ClientOfflineError, ErrorReply, SocketClosedUnexpectedlyError } from '@redis/client';

import { reasonOfRedis } from './reason.ts';

const REASONS: readonly (readonly [error: unknown, reason: string | undefined])[] = [
  [new ErrorReply("OOM command not allowed when used memory > 'maxmemory'."), 'redis has no memory left (maxmemory)'],
  [
    new ErrorReply("READONLY You can't write against a read only replica."),
    'redis is a replica, which takes no writes',
  ],
  [new ErrorReply('NOAUTH Authentication required.'), 'redis wants a password: store.url has none'],
  [new ErrorReply('ERR unknown command'), 'redis has refused a command (ERR)'],
  [new ErrorReply('@user_script: 1: a line of the script'), 'redis has refused a command (ERR)'],
  [new SocketClosedUnexpectedlyError(), 'the connection to redis broke'],
  [new ClientOfflineError(), 'redis is not connected'],
  [new Error('redis has not answered in 500 ms'), undefined],
];

for (const [error, reason] of REASONS) {
  test(`the reason of ${String(error)}`, () => {
    assert.equal(reasonOfRedis(error), reason);
  });
}
