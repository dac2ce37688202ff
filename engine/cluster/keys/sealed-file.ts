import { existsSync, readFileSync } from 'node:fs';

import { writeWhole } from '../../host/files/write-whole.ts';
import { decrypt, encrypt } from '../../lib/encryption.ts';

/** Secrets of a manager on its disk: its certificate with the key (PEM), the key of its etcd (PEM), the data key (base64). */
export type ManagerKeys = Readonly<{ certificate?: string; key?: string; peerKey?: string; dataKey?: string }>;

const LABEL = 'keys of a manager';

/** Stores the keys of a manager in one step, encrypted by the unlock key. */
export function writeSealedKeys(path: string, unlockKey: Buffer, keys: ManagerKeys): void {
  writeWhole(path, encrypt(unlockKey, LABEL, Buffer.from(JSON.stringify(keys))));
}

/** Undefined: the unlock key is another one, or no keys are sealed. */
export function readSealedKeys(path: string, unlockKey: Buffer): ManagerKeys | undefined {
  const text = existsSync(path) ? decrypt(unlockKey, LABEL, readFileSync(path)) : undefined;
  return text === undefined ? undefined : (JSON.parse(text.toString()) as ManagerKeys);
}
