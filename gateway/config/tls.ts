import { readFileSync } from 'node:fs';
import { createSecureContext, type SecureContext } from 'node:tls';

import type { Config } from './schema.ts';

type Tls = NonNullable<Config['tls']>;

export type Certificate = Readonly<{ cert: Buffer; key: Buffer }>;

export function certificateOf({ certFile, keyFile }: Tls): Certificate {
  return { cert: readFileSync(certFile), key: readFileSync(keyFile) };
}

/** Throws when the files cannot be read, or do not belong together. */
export function secureContextOf(tls: Tls): SecureContext {
  return createSecureContext(certificateOf(tls));
}
