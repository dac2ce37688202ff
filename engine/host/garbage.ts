import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

type Collect = (options: { type: 'minor' | 'major' }) => void;

let collector: Collect | undefined;

/** Collects the young generation in half a millisecond, for work that produces much garbage. */
export function collectYoung(): void {
  collector ??= exposedCollector();
  collector({ type: 'minor' });
}

const BYTES_PER_YOUNG = 4 * 1024 * 1024;
/** Bytes of buffers that outlive young collections before the whole heap is collected, which takes as long as 100 MB of young ones. */
const MAX_SURVIVING_BYTES = 12 * 1024 * 1024;
/** Bytes of all streams of this thread: many small ones side by side leave as much garbage as one long one. */
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
  if (arrayBuffers < floor + MAX_SURVIVING_BYTES) return;
  collector!({ type: 'major' });
  floor = process.memoryUsage().arrayBuffers;
}

/** V8 exposes `gc` only to contexts that are created under this flag. The flag counts for all threads, and stays: others may need it. */
function exposedCollector(): Collect {
  setFlagsFromString('--expose-gc');
  return runInNewContext('gc') as Collect;
}
