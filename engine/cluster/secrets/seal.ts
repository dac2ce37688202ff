import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto';

import { EngineError } from '../../lib/errors.ts';
import type { SecretKind } from './kinds.ts';

const CIPHER = 'aes-256-gcm';
const [KEY_BYTES, NONCE_BYTES, TAG_BYTES] = [32, 12, 16];

/** Names the object that data belongs to: sealed data of one opens as that of no other. */
export type Sealed = Readonly<{ kind: SecretKind; name: string }>;

export function newDataKey(): Buffer {
  return randomBytes(KEY_BYTES);
}

/** Identifies a key without showing it. */
export function digestOfKey(key: Buffer): string {
  return createHash('sha256').update(key).digest('hex');
}

/** Encrypts data for the records of the cluster: base64 of nonce, ciphertext and tag. */
export function seal(key: Buffer, of: Sealed, data: Buffer): string {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(CIPHER, key, nonce).setAAD(nameOf(of));
  return Buffer.concat([nonce, cipher.update(data), cipher.final(), cipher.getAuthTag()]).toString('base64');
}

/** Decrypts sealed data; throws `failed` if the key is another one, or the data was changed. */
export function unseal(key: Buffer, of: Sealed, sealed: string): Buffer {
  const bytes = Buffer.from(sealed, 'base64');
  try {
    const decipher = createDecipheriv(CIPHER, key, bytes.subarray(0, NONCE_BYTES)).setAAD(nameOf(of));
    decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
    return Buffer.concat([decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()]);
  } catch (error) {
    throw new EngineError('failed', `the ${of.kind} ${of.name} cannot be decrypted`, { cause: error });
  }
}

function nameOf({ kind, name }: Sealed): Buffer {
  return Buffer.from(`${kind}/${name}`);
}
