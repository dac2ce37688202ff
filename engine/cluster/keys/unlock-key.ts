import { newEncryptionKey } from '../../lib/encryption.ts';
import { EngineError } from '../../lib/errors.ts';

const UNLOCK_KEY = /^SWMKEY-1-([A-Za-z0-9+/]*)$/;

/** A new key to unlock managers with, as users see it. */
export function newUnlockKey(): string {
  return `SWMKEY-1-${newEncryptionKey().toString('base64').replace(/=+$/, '')}`;
}

/** Throws `invalid` for a text of another form; a key of another length unlocks nothing. */
export function parseUnlockKey(text: string): Buffer {
  const digits = UNLOCK_KEY.exec(text)?.[1];
  if (digits === undefined || digits.length % 4 === 1) throw new EngineError('invalid', 'invalid key string');
  return Buffer.from(digits, 'base64');
}
