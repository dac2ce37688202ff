import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { rootCertificates } from 'node:tls';

import { EngineError, hasCode } from '../../lib/errors.ts';

/** The authorities and client certificates of connections to one registry. */
export type Certificates = Readonly<{ ca?: string[]; cert?: string; key?: string }>;

/**
 * The files of `<folder>/<host:port>/`: each `.crt` is an authority, `.cert` and `.key` of one name are ours. They add to
 * the system's authorities.
 */
export function certificatesOf(folder: string, host: string): Certificates {
  const place = join(folder, host);
  const names = namesIn(place);
  const read = (name: string): string => readFileSync(join(place, name), 'utf8');
  const authorities = names.filter((name) => name.endsWith('.crt')).map(read);
  const [cert] = names.filter((name) => name.endsWith('.cert'));
  const key = cert?.replace(/cert$/, 'key');
  if (cert !== undefined && !names.includes(key!)) {
    throw new EngineError(
      'failed',
      `missing key ${key} for client certificate ${cert}. CA certificates must use the extension .crt`,
    );
  }
  return {
    ...(authorities.length > 0 && { ca: [...rootCertificates, ...authorities] }),
    ...(cert !== undefined && { cert: read(cert), key: read(key!) }),
  };
}

function namesIn(place: string): string[] {
  try {
    return readdirSync(place).toSorted();
  } catch (error) {
    // A name that is too long for a folder has no certificates.
    if (['ENOENT', 'ENOTDIR', 'ENAMETOOLONG'].some((code) => hasCode(error, code))) return [];
    throw error;
  }
}
