import { readFileSync } from 'node:fs';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

import { bind } from './libc.ts';

const allocatorOption = bind<[number, number], number>('int mallopt(int option, int value)');
const trimAllocator = bind<[number], number>('int malloc_trim(size_t keep)');
const adviseMemory = bind<[bigint, number, number], number>('int madvise(void *address, size_t length, int advice)');

const ARENAS = -8;
const DONT_NEED = 4;

/**
 * Keeps a process small that lives long and does little: the young generation of the heap does not grow (it would take
 * 40 MB for what a start leaves behind), and the threads share one arena of the C library. To be called first.
 */
export function keepMemorySmall(): void {
  setFlagsFromString('--semi-space-growth-factor=1');
  allocatorOption(ARENAS, 1);
}

/**
 * Gives back what a start, or a thread that has ended, leaves behind: freed memory of the C library, and the pages of
 * Node's own code, of which a start touches 25 MB and the work afterwards a few. What is needed again is mapped again from the page cache.
 */
export function giveBackMemory(maps = readFileSync('/proc/self/maps', 'utf8')): void {
  trimAllocator(0);
  for (const { start, end } of codeOf(maps, process.execPath)) adviseMemory(start, Number(end - start), DONT_NEED);
}

let collector: ((options: { type: 'minor' }) => void) | undefined;

/** Frees what was made a moment ago and is of no use any more, in half a millisecond: for work that makes much of it. */
export function collectYoung(): void {
  collector ??= exposedCollector();
  collector({ type: 'minor' });
}

/** V8 hands it out only to contexts that are made under this flag. */
function exposedCollector(): (options: { type: 'minor' }) => void {
  setFlagsFromString('--expose-gc');
  const exposed = runInNewContext('gc') as (options: { type: 'minor' }) => void;
  setFlagsFromString('--no-expose-gc');
  return exposed;
}

/** The executable mappings of a file: never written to, so that nothing is lost with them. */
export function codeOf(maps: string, path: string): { start: bigint; end: bigint }[] {
  return maps
    .split('\n')
    .filter((line) => line.includes(' r-xp ') && line.endsWith(` ${path}`))
    .map((line) => /^(?<start>[0-9a-f]+)-(?<end>[0-9a-f]+) /.exec(line)?.groups)
    .filter((found) => found !== undefined)
    .map(({ start, end }) => ({ start: BigInt(`0x${start}`), end: BigInt(`0x${end}`) }));
}
