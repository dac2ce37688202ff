import { isIP } from 'node:net';

import { callerFrom, type PrimaryLimits } from '@gantry/limiter/primary.ts';

const NAMED = /^(user|installation|app|workflow|network):[^\s{}]{1,200}$/;

/** The key of a caller as an operator writes it: `user:42`, `ip:2001:db8::1`. Undefined: it cannot be one. */
export function callerKey(text: string, limits: PrimaryLimits): string | undefined {
  if (!text.startsWith('ip:')) return NAMED.test(text) ? text : undefined;
  const address = text.slice(3).replace(/\/\d+$/, '');
  const complete = isIP(address) === 0 ? `${address}::` : address; // `2001:db8:1:2/64`, as it is shown
  return isIP(complete) === 0 ? undefined : callerFrom({ kind: 'anonymous', address: complete }, limits).key;
}
