import { readFileSync, writeFileSync } from 'node:fs';

import { hasCode } from '../lib/errors.ts';

const OWN = '/proc/self/oom_score_adj';
/**
 * dockerd's score. Shims lower theirs themselves, because a container dies with its shim; containers have their own
 * setting.
 */
const SCORE = -500;

/**
 * Lowers the daemon's score, so that the OOM killer prefers other processes. Without CAP_SYS_RESOURCE the score stays.
 */
export function spareFromOom(): void {
  if (Number(readFileSync(OWN, 'utf8')) <= SCORE) return;
  try {
    writeFileSync(OWN, String(SCORE));
  } catch (error) {
    if (!hasCode(error, 'EACCES') && !hasCode(error, 'EPERM')) throw error;
  }
}
