import { readFileSync } from 'node:fs';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

import { bind } from './libc.ts';

const allocatorOption = bind<[number, number], number>('int mallopt(int option, int value)');
const trimAllocator = bind<[number], number>('int malloc_trim(size_t keep)');
const adviseMemory = bind<[bigint, number, number], number>('int madvise(void *address, size_t length, int advice)');

/** One that is only read, with the lines about it. */
const MAPPING = /^(?<start>[0-9a-f]+)-(?<end>[0-9a-f]+) r-[x-]p \S+ \S+ \d+ +(?<file>.*)\n(?<rest>[^]*)/;
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
 * Gives back what a start, or work that has ended, leaves behind: freed memory of the C library, and the pages of Node's
 * own file, of which a start touches 40 MB and the work afterwards a few. What is needed again is mapped again from the page cache.
 */
export function giveBackMemory(smaps = readFileSync('/proc/self/smaps', 'utf8')): void {
  trimAllocator(0);
  for (const { start, end } of cleanMappingsOf(smaps, process.execPath)) {
    adviseMemory(start, Number(end - start), DONT_NEED);
  }
}

type Collect = (options: { type: 'minor' | 'major' }) => void;

let collector: Collect | undefined;

/** Frees what was made a moment ago and is of no use any more, in half a millisecond: for work that makes much of it. */
export function collectYoung(): void {
  collector ??= exposedCollector();
  collector({ type: 'minor' });
}

/** V8 hands it out only to contexts that are made under this flag. */
function exposedCollector(): Collect {
  setFlagsFromString('--expose-gc');
  const exposed = runInNewContext('gc') as Collect;
  setFlagsFromString('--no-expose-gc');
  return exposed;
}

/** Looks through the whole heap for what is of no use any more, and gives that back too: some 20 milliseconds. */
export function shrink(): void {
  collector ??= exposedCollector();
  collector({ type: 'major' });
  giveBackMemory();
}

/** The mappings of a file that nobody has written to, so that nothing is lost with them: code and constants. */
export function cleanMappingsOf(smaps: string, path: string): { start: bigint; end: bigint }[] {
  return smaps
    .split(/\n(?=[0-9a-f]+-)/)
    .map((mapping) => MAPPING.exec(mapping)?.groups)
    .filter((found) => found !== undefined)
    .filter(({ file, rest }) => file === path && /^Anonymous: +0 kB$/m.test(rest!))
    .map(({ start, end }) => ({ start: BigInt(`0x${start}`), end: BigInt(`0x${end}`) }));
}
