import { hardLimits } from '../host/confinement/privileges.ts';
import type { ProcessDescription } from './description.ts';

/**
 * The kernel's limits for arguments and environment: execve(2). The page size is the largest that the machine may have.
 */
const MAX_STRING_LENGTH = 32 * (process.arch === 'x64' ? 4096 : 65_536);
const [LEAST, MAX_COUNT] = [128 * 1024, 6 * 1024 * 1024];
const POINTER = 8;

let ownStack: number | undefined;

/**
 * Whether the kernel is sure to refuse the process for the length of its arguments and environment (E2BIG). The
 * runtimes notice only after they have reported its start.
 */
export function isTooLong({ args, env, ulimits }: ProcessDescription): boolean {
  const sizes = [...args, ...env].map((text) => Buffer.byteLength(text) + 1);
  if (sizes.some((size) => size > MAX_STRING_LENGTH)) return true;
  const all = sizes.reduce((sum, size) => sum + size + POINTER, 0);
  return all > LEAST && all > spaceFor(ulimits.stack?.soft);
}

function spaceFor(asked: number | undefined): number {
  const stack = asked ?? (ownStack ??= hardLimits().get('RLIMIT_STACK')?.soft ?? Infinity);
  return stack < 0 ? MAX_COUNT : Math.max(LEAST, Math.min(MAX_COUNT, stack / 4));
}
