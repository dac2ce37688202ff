import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { isIPv6 } from 'node:net';

import { isLoopback } from '../config/hosts.ts';

/**
 * The name of this machine that a browser can verify: the address of the setting if the certificate has it, else the
 * first name in the certificate that other machines know too.
 */
export function serverName(certificate: string, address: string): string {
  const { subjectAltName = '' } = new X509Certificate(readFileSync(certificate));
  const names = subjectAltName.split(', ').flatMap((entry) => /^(?:DNS|IP Address):([^*]+)$/.exec(entry)?.[1] ?? []);
  const known = names.find((name) => name !== 'localhost' && !isLoopback(name));
  const name = names.includes(address) ? address : (known ?? names[0] ?? address);
  return isIPv6(name) ? `[${name}]` : name;
}
