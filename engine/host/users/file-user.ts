import { bind, check } from '../libc.ts';

const PR_GET_SECUREBITS = 27;
const PR_SET_SECUREBITS = 28;
const NO_SETUID_FIXUP = 4;

const setfsuid = bind<[number], number>('int setfsuid(uint32_t uid)');
const setfsgid = bind<[number], number>('int setfsgid(uint32_t gid)');
const prctl = bind<[number, number, number, number, number], number>(
  'int prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d)',
);

/**
 * Runs `work` with another owner of new files, for this thread alone, and all its capabilities. Mounts with mapped
 * owners let only users of the map create files.
 */
export function asUser<T>({ uid, gid }: { uid: number; gid: number }, work: () => T): T {
  const bits = check(prctl(PR_GET_SECUREBITS, 0, 0, 0, 0), 'prctl', ['get']);
  check(prctl(PR_SET_SECUREBITS, bits | NO_SETUID_FIXUP, 0, 0, 0), 'prctl', ['set']);
  setfsgid(gid);
  setfsuid(uid);
  try {
    return work();
  } finally {
    setfsuid(0);
    setfsgid(0);
    check(prctl(PR_SET_SECUREBITS, bits, 0, 0, 0), 'prctl', ['reset']);
  }
}
