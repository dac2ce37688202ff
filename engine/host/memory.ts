import { readFileSync } from 'node:fs';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

import { bind } from './libc.ts';

const allocatorOption = bind<[number, number], number>('int mallopt(int option, int value)');
const trimAllocator = bind<[number], number>('int malloc_trim(size_t keep)');
const adviseMemory = bind<[bigint, number, number], number>('int madvise(void *address, size_t length, int advice)');

/** A read-only mapping, with its lines in smaps. */
const MAPPING = /^(?<start>[0-9a-f]+)-(?<end>[0-9a-f]+) r-[x-]p \S+ \S+ \d+ +(?<file>.*)\n(?<rest>[^]*)/;
const ARENAS = -8;
const DONT_NEED = 4;

/**
 * Keeps a long-lived, mostly idle process small: the young generation of the heap does not grow (garbage of the start
 * would take 40 MB), and the threads share one arena of the C library. To be called first.
 */
export function keepMemorySmall(): void {
  setFlagsFromString('--semi-space-growth-factor=1');
  allocatorOption(ARENAS, 1);
}

/**
 * Returns memory to the kernel after a start or after work: freed memory of the C library, and the pages of Node's
 * executable, of which a start touches 40 MB and later work a few. Pages that are needed again come from the page
 * cache.
 */
export function giveBackMemory(smaps = readFileSync('/proc/self/smaps', 'utf8')): void {
  trimAllocator(0);
  for (const { start, end } of cleanMappingsOf(smaps, process.execPath)) {
    adviseMemory(start, Number(end - start), DONT_NEED);
  }
}

type Collect = (options: { type: 'minor' | 'major' }) => void;

let collector: Collect | undefined;

/** Collects the young generation in half a millisecond, for work that produces much garbage. */
export function collectYoung(): void {
  collector ??= exposedCollector();
  collector({ type: 'minor' });
}

const BYTES_PER_YOUNG = 8 * 1024 * 1024;
const BYTES_PER_WHOLE = 256 * 1024 * 1024;

/**
 * Collects garbage of passing buffers: V8 by itself lets them grow by a hundred megabytes. Buffers that survive two
 * young collections wait for one of the whole heap.
 */
export class PassingBytes {
  #young = 0;
  #whole = 0;

  passed(bytes: number): void {
    this.#young += bytes;
    this.#whole += bytes;
    if (this.#young < BYTES_PER_YOUNG) return;
    this.#young = 0;
    collector ??= exposedCollector();
    const isWhole = this.#whole >= BYTES_PER_WHOLE;
    if (isWhole) this.#whole = 0;
    collector({ type: isWhole ? 'major' : 'minor' });
  }
}

/** V8 exposes `gc` only to contexts that are created under this flag. */
function exposedCollector(): Collect {
  setFlagsFromString('--expose-gc');
  const exposed = runInNewContext('gc') as Collect;
  setFlagsFromString('--no-expose-gc');
  return exposed;
}

/** Also collects the whole heap first, which takes some 20 milliseconds. */
export function shrink(): void {
  collector ??= exposedCollector();
  collector({ type: 'major' });
  giveBackMemory();
}

/** The clean mappings of a file (code and constants): dropping their pages loses nothing. */
export function cleanMappingsOf(smaps: string, path: string): { start: bigint; end: bigint }[] {
  return smaps
    .split(/\n(?=[0-9a-f]+-)/)
    .map((mapping) => MAPPING.exec(mapping)?.groups)
    .filter((found) => found !== undefined)
    .filter(({ file, rest }) => file === path && /^Anonymous: +0 kB$/m.test(rest!))
    .map(({ start, end }) => ({ start: BigInt(`0x${start}`), end: BigInt(`0x${end}`) }));
}
