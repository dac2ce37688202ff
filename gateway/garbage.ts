import { setFlagsFromString } from 'node:v8';

/**
 * A request's objects are garbage a moment later. Once V8 has seen many of them survive, it allocates such objects in
 * the old generation; dead ones then keep the young ones that they refer to until the next full collection, so that more
 * survive, and this goes on: a fifth of all time went into garbage collection.
 *
 * So little survives that one thread collects it in a millisecond. Several threads wait for each other, and on a
 * machine whose cores are busy that took up to 50 ms.
 *
 * To be called before the first request.
 */
export function keepGarbageYoung(): void {
  setFlagsFromString('--no-allocation-site-pretenuring');
  setFlagsFromString('--no-parallel-scavenge');
}
