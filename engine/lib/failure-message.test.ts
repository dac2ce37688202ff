import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { lookup } from 'node:dns/promises';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { suite, test } from 'node:test';

import { EngineError } from './errors.ts';
import { messageOf } from './failure-message.ts';

const failureOf = async (work: Promise<unknown>): Promise<unknown> =>
  await work.then(
    () => assert.fail('it has not failed'),
    (error: unknown) => error,
  );
const coded = (message: string, code: string): Error => Object.assign(new Error(message), { code, syscall: 'x' });

suite('the message of a failure', () => {
  const cases: readonly [name: string, failure: unknown, message: string][] = [
    ['an error of the engine', new EngineError('invalid', 'no name'), 'no name'],
    ['any other error', new Error('odd'), 'odd'],
    ['a value that is no error', 'text', 'text'],
    ['a system call', coded('openat2("a/"): ENOTDIR', 'ENOTDIR'), 'not a directory'],
    ['a full disk', coded('ENOSPC: no space left on device, write', 'ENOSPC'), 'no space left on device'],
    ['an error with a code of Node', coded('odd', 'ERR_X'), 'odd'],
    ['an error with the name of a property', coded('odd', 'constructor'), 'odd'],
    ['an error of our own with a code', Object.assign(new Error('odd'), { code: 'EBUSY' }), 'odd'],
    ['a failed undo', new SuppressedError(new Error('undo'), coded('x', 'EBUSY')), 'resource busy or locked'],
    ['several addresses', new AggregateError([coded('x', 'ECONNREFUSED')]), 'connection refused'],
  ];
  for (const [name, failure, message] of cases) {
    test(`${name}: ${message}`, () => assert.equal(messageOf(failure), message));
  }

  test('a missing file is named without its path', async () => {
    assert.equal(messageOf(await failureOf(readFile('/nowhere/at/all'))), 'no such file or directory');
  });

  test('a refused connection has its address', async () => {
    assert.equal(
      messageOf(await failureOf(once(connect(1, '127.0.0.1'), 'connect'))),
      '127.0.0.1:1: connection refused',
    );
  });

  test('a missing program is named', async () => {
    assert.equal(messageOf(await failureOf(once(spawn('/nowhere'), 'exit'))), '/nowhere: no such file or directory');
  });

  test('an unknown host has its name', async () => {
    assert.equal(messageOf(await failureOf(lookup('nowhere.invalid'))), 'nowhere.invalid: no such host');
  });

  for (const host of ['a'.repeat(300), `${'a'.repeat(60)}.`.repeat(5), `${'a'.repeat(70)}.invalid`]) {
    test(`the host ${host.slice(0, 75)}… of ${host.length} letters is unknown`, async () => {
      assert.equal(messageOf(await failureOf(lookup(host))), `${host}: no such host`);
    });
  }

  test('a path that is too long for a socket is told as such', async () => {
    const path = `/tmp/${'p'.repeat(200)}`;

    const message = messageOf(await failureOf(once(connect(path), 'connect')));

    assert.equal(message, `${path}: the path of a socket has at most 107 bytes`);
  });
});
