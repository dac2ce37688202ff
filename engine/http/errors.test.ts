import assert from 'node:assert/strict';
import { test } from 'node:test';

import { EngineError } from '../lib/errors.ts';
import { messageOf } from '../lib/failure-message.ts';
import { describeError } from '../log.ts';
import { errorStatus } from './errors.ts';

/** Error of `await using` when both the work and its undoing fail. */
const both = new SuppressedError(
  new Error('not unmounted'),
  new EngineError('notFound', 'No such container: x'),
  'An error was suppressed during disposal',
);

test('a client hears the first failure, not that undoing it failed too', () => {
  assert.equal(errorStatus(both, '1.24'), 404);
  assert.equal(messageOf(both), 'No such container: x');
});

test('the log names both', () => {
  const { error, suppressed } = describeError(both) as Record<string, { message: string }>;

  assert.equal(error?.message, 'not unmounted');
  assert.equal(suppressed?.message, 'No such container: x');
});
