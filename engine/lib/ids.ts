import { randomBytes } from 'node:crypto';

/** A new object id: 64 hexadecimal digits, as clients expect of containers, networks and execs. */
export function newId(): string {
  for (;;) {
    const id = randomBytes(32).toString('hex');
    // A short id of digits only would be read as a number by shells and by host name parsers.
    if (!/^\d{12}/.test(id)) return id;
  }
}

/** The first 12 digits, which is what people see and type. */
export function shortId(id: string): string {
  return id.slice(0, 12);
}
