import { callerFrom } from '@gantry/limiter/primary.ts';
import { limitRules } from '@gantry/limiter/rules.ts';
import type { Caller } from '@gantry/limiter/types.ts';

export const ENOUGH = 1_000_000_000;

/** Limits that are checked but never reached. */
export const rules = limitRules({
  concurrent: { limit: 60_000, retrySeconds: 1 },
  restPoints: { limit: ENOUGH, windowSeconds: 60 },
  cpu: { totalSeconds: 2000, graphqlSeconds: 2000, windowSeconds: 60 },
  contentPerMinute: { limit: ENOUGH, windowSeconds: 60 },
  contentPerHour: { limit: ENOUGH, windowSeconds: 3600 },
});

export function address(n: number): string {
  return inOnePiece(`10.${(n >> 16) & 255}.${(n >> 8) & 255}.${n & 255}`);
}

/** Flat strings, like those from a socket; V8 keeps concatenated ones as a tree. */
function inOnePiece(text: string): string {
  return Buffer.from(text).toString('latin1');
}

export function callers(count: number): Caller[] {
  return Array.from({ length: count }, (_, n) => {
    const { kind, key, label } = callerFrom({ kind: 'anonymous', address: address(n) });
    return { kind, key: inOnePiece(key), limit: ENOUGH, label };
  });
}
