import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createSecureContext } from 'node:tls';

import { EngineError } from '../lib/errors.ts';
import { messageOf } from '../lib/failure-message.ts';

/** Reads a file that a setting names. Throws `invalid`, which names the file. */
export function readSettingsFile(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new EngineError('invalid', `cannot read ${path}: ${messageOf(error)}`, { cause: error });
  }
}

/** Reads a file of JSON, of the operator's and without limits. Throws `invalid`. */
export function readJsonFile(path: string): unknown {
  const text = readSettingsFile(path);
  try {
    return JSON.parse(text);
  } catch (error) {
    // The parser tells the place in its message alone.
    const [place = ''] = /\(line \d+ column \d+\)$/.exec(String(error)) ?? [];
    throw new EngineError('invalid', `${path} is not JSON ${place}`.trimEnd(), { cause: error });
  }
}

/** Throws `invalid` for files that are no certificate and key, or do not belong together. */
export function checkCertificateFiles(certFile: string, keyFile: string): void {
  const [cert, key] = [readSettingsFile(certFile), readSettingsFile(keyFile)];
  const certificate = parse(() => new X509Certificate(cert), `${certFile} does not contain a certificate in PEM`);
  const privateKey = parse(
    () => createPrivateKey(key),
    `${keyFile} does not contain a key in PEM without a passphrase`,
  );
  const apart = `${certFile} and ${keyFile} cannot be used together`;
  if (!certificate.checkPrivateKey(privateKey)) throw new EngineError('invalid', apart);
  parse(() => createSecureContext({ cert, key }), apart);
}

/** The reasons of OpenSSL say nothing more to an operator. */
function parse<T>(read: () => T, problem: string): T {
  try {
    return read();
  } catch (error) {
    throw new EngineError('invalid', problem, { cause: error });
  }
}
