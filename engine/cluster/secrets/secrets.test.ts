import assert from 'node:assert/strict';
import { suite, test } from 'node:test';

import { newEncryptionKey } from '../../lib/encryption.ts';
import { EngineError } from '../../lib/errors.ts';
import { seal, unseal } from './seal.ts';
import { readSecretSpec } from './spec.ts';

suite('sealed data', () => {
  const key = newEncryptionKey();
  const of = { kind: 'secret', name: 'one' } as const;
  const data = Buffer.from('the value');
  const sealed = seal(key, of, data);

  test('opens by its key and name', () => {
    assert.deepEqual(unseal(key, of, sealed), data);
    assert.equal(Buffer.from(sealed, 'base64').includes(data), false);
  });

  test('differs each time', () => {
    assert.notEqual(seal(key, of, data), sealed);
  });

  for (const [why, open] of [
    ['another key', () => unseal(newEncryptionKey(), of, sealed)],
    ['another name', () => unseal(key, { ...of, name: 'two' }, sealed)],
    ['another kind', () => unseal(key, { ...of, kind: 'config' }, sealed)],
    ['changed data', () => unseal(key, of, `${sealed.startsWith('A') ? 'B' : 'A'}${sealed.slice(1)}`)],
    ['no data', () => unseal(key, of, '')],
  ] as const) {
    test(`does not open by ${why}`, () => {
      assert.throws(open, (error: unknown) => error instanceof EngineError && error.kind === 'failed');
    });
  }
});

suite('the specification of a secret', () => {
  const Data = Buffer.from('x').toString('base64');

  test('a driver is none that is known', () => {
    assert.throws(() => readSecretSpec('secret', { Name: 'a', Driver: { Name: 'vault' } }), {
      kind: 'failed',
      message: 'rpc error: code = Unknown desc = plugin "vault" not found',
    });
  });

  test('a config has no driver: the field is ignored', () => {
    assert.equal(readSecretSpec('config', { Name: 'a', Data, Driver: { Name: 'vault' } }).data.toString(), 'x');
  });

  for (const [body, message] of [
    [{ Name: 'a', Data, Labels: { a: 'x'.repeat(70_000) } }, /64 KB/],
    [{ Name: 'a', Data, Templating: { Name: 'x'.repeat(70_000) } }, /64 KB/],
    [{ Name: 'a', Data: 'YQ=' }, /illegal base64/],
    [{ Name: 'a', Data: 'Y' }, /illegal base64/],
    [{ Name: 'a/b', Data }, /invalid name/],
    [{ Name: '..', Data }, /invalid name/],
  ] as const) {
    test(`${JSON.stringify(body).slice(0, 60)} is refused`, () => {
      assert.throws(() => readSecretSpec('secret', body), { kind: 'invalid', message });
    });
  }
});
