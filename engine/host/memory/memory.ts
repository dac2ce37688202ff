import { readFileSync } from 'node:fs';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

import { bind } from '../libc.ts';

const allocatorOption = bind<[number, number], number>('int mallopt(int option, int value)');
const trimAllocator = bind<[number], number>('int malloc_trim(size_t keep)');
const adviseMemory = bind<[bigint, number, number], number>('int madvise(void *address, size_t length, int advice)');

/** A read-only mapping, with its lines in smaps. */
const MAPPING = /^(?<start>[0-9a-f]+)-(?<end>[0-9a-f]+) r-[x-]p \S+ \S+ \d+ +(?<file>.*)\n(?<rest>[^]*)/;
const [ARENAS, MAPPED_FROM] = [-8, -3];
/** Such a piece is mapped for itself, so that the kernel has it back as soon as it is freed. */
const MAPPED_BYTES = 128 * 1024;
const DONT_NEED = 4;

/**
 * Keeps a long-lived, mostly idle process small: the young generation of the heap does not grow (garbage of the start
 * would take 40 MB) and is collected by one thread, as several wait for each other; and the threads share one arena of the C
 * library. To be called first.
 */
export function keepMemorySmall(): void {
  setFlagsFromString('--semi-space-growth-factor=1');
  setFlagsFromString('--no-parallel-scavenge');
  allocatorOption(ARENAS, 1);
  allocatorOption(MAPPED_FROM, MAPPED_BYTES);
}

/**
 * Returns memory to the kernel after a start or after work: freed memory of the C library, and the pages of Node's
 * executable, of which a start touches 40 MB and later work a few. Pages that are needed again come from the page
 * cache.
 */
export function giveBackMemory(): void {
  trimAllocator(0);
  ownCode ??= cleanMappingsOf(readFileSync('/proc/self/smaps', 'utf8'), process.execPath);
  for (const { start, end } of ownCode) adviseMemory(start, Number(end - start), DONT_NEED);
}

/** Read once, because reading takes longer than all else here. It lies where it is as long as the process lives. */
let ownCode: ReturnType<typeof cleanMappingsOf> | undefined;

type Collect = (options: { type: 'minor' | 'major' }) => void;

let collector: Collect | undefined;

/** Collects the young generation in half a millisecond, for work that produces much garbage. */
export function collectYoung(): void {
  collector ??= exposedCollector();
  collector({ type: 'minor' });
}

const BYTES_PER_YOUNG = 4 * 1024 * 1024;
/** Of buffers that outlive young collections; the collection of the whole heap takes as long as that of 100 MB of young ones. */
const MOST_KEPT_BYTES = 12 * 1024 * 1024;
/** Of this thread: many small streams side by side leave as much garbage as one long one. */
let passed = 0;
/** The bytes of buffers that are in use whatever passes. */
let floor = Infinity;

/**
 * Collects garbage of passing buffers: V8 by itself lets them grow by a hundred megabytes. Buffers that survive two
 * young collections wait for one of the whole heap, which comes when they are many.
 */
export function bytesPassed(bytes: number): void {
  passed += bytes;
  if (passed < BYTES_PER_YOUNG) return;
  passed = 0;
  collectYoung();
  const { arrayBuffers } = process.memoryUsage();
  floor = Math.min(floor, arrayBuffers);
  if (arrayBuffers < floor + MOST_KEPT_BYTES) return;
  collector!({ type: 'major' });
  floor = process.memoryUsage().arrayBuffers;
}

/** V8 exposes `gc` only to contexts that are created under this flag. It is that of all threads, and stays: others may need it. */
function exposedCollector(): Collect {
  setFlagsFromString('--expose-gc');
  return runInNewContext('gc') as Collect;
}

/** Also collects the whole heap first, which takes some 20 milliseconds. */
export function shrink(): void {
  collector ??= exposedCollector();
  collector({ type: 'major' });
  giveBackMemory();
}

/**
 * The clean mappings of a file (code and constants): dropping their pages loses nothing. Only those where the program was
 * loaded: V8 maps parts of it again for each thread, and something else has that place when the thread has ended.
 */
export function cleanMappingsOf(smaps: string, path: string): { start: bigint; end: bigint }[] {
  const ofFile = smaps
    .split(/\n(?=[0-9a-f]+-)/)
    .map((mapping) => MAPPING.exec(mapping)?.groups)
    .filter((found) => found?.file === path)
    .map((found) => ({ start: BigInt(`0x${found!.start}`), end: BigInt(`0x${found!.end}`), rest: found!.rest ?? '' }));
  const gap = ofFile.findIndex(({ start }, at) => at > 0 && start !== ofFile[at - 1]!.end);
  return ofFile
    .slice(0, gap < 0 ? undefined : gap)
    .filter(({ rest }) => /^Anonymous: +0 kB$/m.test(rest))
    .map(({ start, end }) => ({ start, end }));
}
