import { randomBytes } from 'node:crypto';

/** A new object id: 64 hexadecimal digits, as clients expect of containers, networks and execs. */
export function newId(): string {
  for (;;) {
    const id = randomBytes(32).toString('hex');
    // Shells and host name parsers would read a short id of digits only as a number.
    if (!/^\d{12}/.test(id)) return id;
  }
}

/** The first 12 digits, which people see and type. */
export function shortId(id: string): string {
  return id.slice(0, 12);
}
