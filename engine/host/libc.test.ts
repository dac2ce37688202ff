import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { test } from 'node:test';

import { bind, check, refusal, SystemError } from './libc.ts';

const close = bind<[number], number>('int close(int fd)');

test('the error of a call is its own, whatever the thread does before it is told', () => {
  const result = close(-1);
  assert.equal(existsSync('/nowhere/at/all'), false); // leaves ENOENT in errno

  assert.equal(refusal('close', [-1]).code, 'EBADF');
  assert.throws(() => check(result, 'close', [-1]), new SystemError('close', [-1], 9));
});
