import { writeFileSync } from 'node:fs';

import { hasCode } from '../../lib/errors.ts';

const SETTINGS = '/proc/sys/net';

/** Without routers' advertisements and redirects: any container could send them. */
const NO_ROUTERS = {
  ipv4: { accept_redirects: '0' },
  ipv6: { accept_ra: '0', autoconf: '0', accept_redirects: '0' },
} as const;

/** Makes a link ignore routers' advertisements and redirects; this thread is in its namespace. */
export function ignoreRouters(link: string): void {
  for (const [family, values] of Object.entries(NO_ROUTERS)) {
    for (const [name, value] of Object.entries(values)) writeSetting(`${family}/conf/${link}/${name}`, value);
  }
}

/** Makes a link drop every packet of IPv6; this thread is in its namespace. */
export function disableIPv6(link: string): void {
  writeSetting(`ipv6/conf/${link}/disable_ipv6`, '1');
}

/** Makes a link without routes drop every packet of IPv4 that has a sender; this thread is in its namespace. */
export function dropWithoutRoute(link: string): void {
  writeSetting(`ipv4/conf/${link}/rp_filter`, '1');
}

/** A missing link, or a kernel without IPv6, has no settings. */
function writeSetting(path: string, value: string): void {
  try {
    writeFileSync(`${SETTINGS}/${path}`, value);
  } catch (error) {
    if (!hasCode(error, 'ENOENT')) throw error;
  }
}
