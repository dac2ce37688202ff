import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';

const CIPHER = 'aes-256-gcm';
const [KEY_BYTES, NONCE_BYTES, TAG_BYTES] = [32, 12, 16];

export function newEncryptionKey(): Buffer {
  return randomBytes(KEY_BYTES);
}

/** Encrypts data: nonce, ciphertext and tag. It decrypts under the same label alone. */
export function encrypt(key: Buffer, label: string, data: Uint8Array): Buffer {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(CIPHER, key, nonce).setAAD(Buffer.from(label));
  return Buffer.concat([nonce, cipher.update(data), cipher.final(), cipher.getAuthTag()]);
}

/** Decrypts the result of `encrypt`. Undefined: the key or the label is another one, or the data was changed. */
export function decrypt(key: Buffer, label: string, encrypted: Buffer): Buffer | undefined {
  if (key.length !== KEY_BYTES || encrypted.length < NONCE_BYTES + TAG_BYTES) return undefined;
  const decipher = createDecipheriv(CIPHER, key, encrypted.subarray(0, NONCE_BYTES)).setAAD(Buffer.from(label));
  decipher.setAuthTag(encrypted.subarray(-TAG_BYTES));
  const start = decipher.update(encrypted.subarray(NONCE_BYTES, -TAG_BYTES));
  try {
    return Buffer.concat([start, decipher.final()]);
  } catch {
    return undefined; // the tag does not fit
  }
}
