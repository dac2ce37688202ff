import { createHash } from 'node:crypto';

import { decrypt, encrypt } from '../../lib/encryption.ts';
import { EngineError } from '../../lib/errors.ts';
import type { SecretKind } from './kinds.ts';

/** Names the object that data belongs to: sealed data of one opens as that of no other. */
type Sealed = Readonly<{ kind: SecretKind; name: string }>;

/** Identifies a key without showing it. */
export function digestOfKey(key: Buffer): string {
  return createHash('sha256').update(key).digest('hex');
}

/** Encrypts data for the records of the cluster, in base64. */
export function seal(key: Buffer, { kind, name }: Sealed, data: Buffer): string {
  return encrypt(key, `${kind}/${name}`, data).toString('base64');
}

/** Decrypts sealed data; throws `failed` if the key is another one, or the data was changed. */
export function unseal(key: Buffer, { kind, name }: Sealed, sealed: string): Buffer {
  const data = decrypt(key, `${kind}/${name}`, Buffer.from(sealed, 'base64'));
  if (data === undefined) throw new EngineError('failed', `the ${kind} ${name} cannot be decrypted`);
  return data;
}
