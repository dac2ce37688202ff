import { createPrivateKey, X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';

import { readFile } from '../lib/reason.ts';
import type { Config } from './schema.ts';

type Tls = NonNullable<Config['tls']>;

export type Certificate = Readonly<{ cert: string; key: string }>;

export function certificateOf({ certFile, keyFile }: Tls): Certificate {
  return { cert: readFile(certFile), key: readFile(keyFile) };
}

/** Throws when the files cannot be read, or do not belong together. */
export function checkTls(tls: Tls): void {
  const { certFile, keyFile } = tls;
  const { cert, key } = certificateOf(tls);
  const certificate = parse(() => new X509Certificate(cert), `${certFile} holds no certificate in PEM`);
  const privateKey = parse(() => createPrivateKey(key), `${keyFile} holds no key in PEM without a passphrase`);
  if (!certificate.checkPrivateKey(privateKey)) throw new Error(`${keyFile} is not the key of ${certFile}`);
  parse(() => createSecureContext({ cert, key }), `${certFile} cannot be used, with those between it and the root`);
}

/** Throws when the file cannot be read, or holds no certificate. */
export function checkAuthorities(caFile: string): void {
  const ca = readFile(caFile);
  parse(() => new X509Certificate(ca), `${caFile} holds no certificate in PEM`);
}

/** The reason is one of OpenSSL, and says nothing more to an operator. */
function parse<T>(read: () => T, problem: string): T {
  try {
    return read();
  } catch (error) {
    throw new Error(problem, { cause: error });
  }
}
