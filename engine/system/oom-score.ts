import { readFileSync, writeFileSync } from 'node:fs';

import { hasCode } from '../lib/errors.ts';

const OWN = '/proc/self/oom_score_adj';
/** dockerd's. Shims, without which a container has no parent, go lower by themselves; containers say theirs. */
const SCORE = -500;

/** When memory is short the kernel looks for something else first. Without CAP_SYS_RESOURCE we stand in the row. */
export function spareFromOom(): void {
  if (Number(readFileSync(OWN, 'utf8')) <= SCORE) return;
  try {
    writeFileSync(OWN, String(SCORE));
  } catch (error) {
    if (!hasCode(error, 'EACCES') && !hasCode(error, 'EPERM')) throw error;
  }
}
