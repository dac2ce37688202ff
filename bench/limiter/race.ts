import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

import { median } from '../measure.ts';

export const ROUNDS = 7;
/** Processor time in 20 ms, of other programs. */
const QUIET_MICROS = 2000;

setFlagsFromString('--expose-gc');
export const collectGarbage = runInNewContext('gc') as () => void;

/** `atLeast`: how many times as fast as this one ours has to be. */
export type Contender = { name: string; atLeast?: number; run: (operations: number) => Promise<void> | void };

type Clock = 'processor' | 'wall';

/**
 * Waits until garbage of the other side is collected: the collector's threads continue after the call returns, and with
 * a million callers for longer than a round.
 */
async function collectAll(): Promise<void> {
  collectGarbage();
  for (let before = -QUIET_MICROS, now = micros('processor'); now - before >= QUIET_MICROS;) {
    await sleep(20);
    before = now;
    now = micros('processor');
  }
}

/** Microseconds of processor time or of elapsed time. */
function micros(clock: Clock): number {
  if (clock === 'wall') return performance.now() * 1000;
  const { user, system } = process.cpuUsage();
  return user + system;
}

/** Operations per second of each, ours first. The first round fills the stores and warms up the code. */
export async function race(
  what: string,
  contenders: readonly Contender[],
  operations: number,
  clock: Clock,
): Promise<void> {
  const costs = contenders.map((): number[] => []);
  for (let round = -1; round < ROUNDS; round += 1) {
    for (const [index, { run }] of contenders.entries()) {
      await collectAll();
      await run(operations / 10); // the collection has dropped compiled code and shrunk the heap
      const started = micros(clock);
      await run(operations);
      if (round >= 0) costs[index]!.push((micros(clock) - started) / operations);
    }
  }
  console.log(what);
  for (const [index, { name, atLeast }] of contenders.entries()) {
    const perSecond = `${Math.round(1000 / median(costs[index]!)).toLocaleString('en')}k/s`.padStart(10);
    const ratio = median(costs[index]!.map((cost, round) => cost / costs[0]![round]!));
    const judged = atLeast === undefined ? '' : ` ${verdict(`≥ ${atLeast}`, ratio >= atLeast)}`;
    const compared = index === 0 ? '' : `  ratio ${ratio.toFixed(2)}${judged}`;
    console.log(`  ${perSecond} ${name}${compared}`);
  }
}

export function verdict(budget: string, met: boolean): string {
  return `(budget ${budget}: ${met ? 'met' : 'NOT MET'})`;
}
