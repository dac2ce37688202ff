import { setImmediate as nextTurn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;
setFlagsFromString('--no-expose-gc');

/** Memory of this process that is in use, in and outside of the heap, without garbage. */
export async function bytesInUse(): Promise<number> {
  for (let n = 0; n < 3; n += 1) {
    await nextTurn();
    collect();
  }
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

/** By how many bytes memory grew while something was done. */
export async function growthBy(
  work: () => unknown,
  look: () => number | Promise<number> = bytesInUse,
): Promise<number> {
  const before = await look();
  await work();
  return (await look()) - before;
}

/**
 * The least of several measurements, of which the first below `enough` is the last one.
 *
 * One figure of memory says little: functions are compiled, tables doubled and garbage collected when the engine thinks it
 * right. A leak shows in every measurement.
 */
export async function leastOf(attempts: number, enough: number, measure: () => Promise<number>): Promise<number> {
  let least = Infinity;
  for (let n = 0; n < attempts && least >= enough; n += 1) least = Math.min(least, await measure());
  return least;
}
