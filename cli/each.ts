import { ApiError } from '@gantry/client/connection.ts';

import { EXIT, Exit } from './exit-codes.ts';
import { red } from './output/colour.ts';
import { visibleLines } from './output/escape.ts';

/** Calls the operation for every name, reports failures, and fails at the end if there was one. */
export async function each(
  refs: readonly string[],
  work: (ref: string) => Promise<void>,
  options: { missingIsFine?: boolean } = {},
): Promise<void> {
  let failed = false;
  for (const ref of refs) {
    try {
      await work(ref);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      console.error(`${red('gantry:')} ${visibleLines(error.message)}`);
      if (error.status !== 404 || options.missingIsFine !== true) failed = true;
    }
  }
  if (failed) throw new Exit(EXIT.failed);
}
