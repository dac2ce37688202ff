import { readFileSync } from 'node:fs';
import { createSecureContext, getCACertificates, type SecureContextOptions } from 'node:tls';

import { EngineError } from '../../lib/errors.ts';
import { messageOf } from '../../lib/failure-message.ts';

/** Files with certificates as log options name them; empty ones are not used. */
type Files = Readonly<{ ca: string; cert?: string; key?: string }>;

/** The settings of TLS from the files. Throws `invalid` for a missing or unusable file. */
export function tlsFiles({ ca, cert = '', key = '' }: Files): SecureContextOptions {
  const system = [...getCACertificates('default'), ...getCACertificates('system')];
  const made: SecureContextOptions = {
    minVersion: 'TLSv1.2',
    ca: ca === '' ? system : [...system, pem('could not read CA certificate', ca).toString()],
    ...((cert !== '' || key !== '') && {
      cert: pem('Could not load X509 key pair', cert),
      key: pem('Could not load X509 key pair', key),
    }),
  };
  try {
    createSecureContext({ ...made, ca: ca === '' ? [] : [readFileSync(ca)] });
  } catch (error) {
    const reason = messageOf(error);
    throw new EngineError('invalid', `the certificates cannot be used: ${reason}`, { cause: error });
  }
  return made;
}

function pem(problem: string, path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    const reason = messageOf(error);
    throw new EngineError('invalid', `${problem} ${JSON.stringify(path)}: open ${path}: ${reason}`, { cause: error });
  }
}
