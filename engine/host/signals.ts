import { bind } from './libc.ts';

const [SIG_BLOCK, SIG_SETMASK] = [0, 2];
/** sizeof(sigset_t). */
const SET_BYTES = 128;
/** A fault of this thread itself, which cannot wait. */
const FAULTS = [4, 5, 7, 8, 11];

const mask = bind<[number, Buffer, Buffer | null], number>(
  'int pthread_sigmask(int how, const void *set, _Out_ void *before)',
);

const all = Buffer.alloc(SET_BYTES, 0xff);
for (const signal of FAULTS) all[(signal - 1) >> 3]! &= ~(1 << ((signal - 1) & 7));

/**
 * Runs synchronous work without interruption: signals to this thread wait until it is done, 2 µs. For libraries that take
 * EINTR for a failure.
 */
export function withoutSignals<T>(work: () => T): T {
  const before = Buffer.alloc(SET_BYTES);
  refuseFailure(mask(SIG_BLOCK, all, before));
  try {
    return work();
  } finally {
    refuseFailure(mask(SIG_SETMASK, before, null));
  }
}

/** Unlike other calls it returns the errno. */
function refuseFailure(errno: number): void {
  if (errno !== 0) throw new Error(`pthread_sigmask: errno ${errno}`);
}
