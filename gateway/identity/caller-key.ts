import { isIP } from 'node:net';

import { callerFrom } from '@gantry/limiter/primary.ts';

const NAMED = /^(user|installation|app|workflow|network):[^\s{}]{1,200}$/;

/** The key of a caller as an operator writes it: `user:42`, `ip:2001:db8::1`. Undefined: it cannot be one. */
export function callerKey(text: string): string | undefined {
  if (!text.startsWith('ip:')) return NAMED.test(text) ? text : undefined;
  const address = addressOf(text);
  return isIP(address) === 0 ? undefined : callerFrom({ kind: 'anonymous', address }).key;
}

/** An address of the caller `ip:…`; of a prefix, as in `ip:2001:db8:1:2/64`, the first one. */
export function addressOf(key: string): string {
  const address = key.slice('ip:'.length).replace(/\/\d+$/, '');
  return isIP(address) === 0 ? `${address}::` : address;
}
