import { readFileSync } from 'node:fs';

/** In the kernel's order: the index is the number. */
export const CAPABILITY_NAMES = [
  'CAP_CHOWN',
  'CAP_DAC_OVERRIDE',
  'CAP_DAC_READ_SEARCH',
  'CAP_FOWNER',
  'CAP_FSETID',
  'CAP_KILL',
  'CAP_SETGID',
  'CAP_SETUID',
  'CAP_SETPCAP',
  'CAP_LINUX_IMMUTABLE',
  'CAP_NET_BIND_SERVICE',
  'CAP_NET_BROADCAST',
  'CAP_NET_ADMIN',
  'CAP_NET_RAW',
  'CAP_IPC_LOCK',
  'CAP_IPC_OWNER',
  'CAP_SYS_MODULE',
  'CAP_SYS_RAWIO',
  'CAP_SYS_CHROOT',
  'CAP_SYS_PTRACE',
  'CAP_SYS_PACCT',
  'CAP_SYS_ADMIN',
  'CAP_SYS_BOOT',
  'CAP_SYS_NICE',
  'CAP_SYS_RESOURCE',
  'CAP_SYS_TIME',
  'CAP_SYS_TTY_CONFIG',
  'CAP_MKNOD',
  'CAP_LEASE',
  'CAP_AUDIT_WRITE',
  'CAP_AUDIT_CONTROL',
  'CAP_SETFCAP',
  'CAP_MAC_OVERRIDE',
  'CAP_MAC_ADMIN',
  'CAP_SYSLOG',
  'CAP_WAKE_ALARM',
  'CAP_BLOCK_SUSPEND',
  'CAP_AUDIT_READ',
  'CAP_PERFMON',
  'CAP_BPF',
  'CAP_CHECKPOINT_RESTORE',
] as const;

/** The upper bound of a container's capabilities: the daemon's bounding and permitted ones. */
export function effectiveCapabilities(): ReadonlySet<string> {
  const status = readFileSync('/proc/thread-self/status', 'utf8');
  const held = maskOf(status, 'CapBnd') & maskOf(status, 'CapPrm');
  return new Set(CAPABILITY_NAMES.filter((_, number) => ((held >> BigInt(number)) & 1n) === 1n));
}

export type Limit = Readonly<{ soft: number; hard: number }>;

/** `RLIMIT_…` by the lines of /proc/self/limits. */
const LIMIT_NAMES: ReadonlyMap<string, string> = new Map(
  Object.entries({
    'Max cpu time': 'RLIMIT_CPU',
    'Max file size': 'RLIMIT_FSIZE',
    'Max data size': 'RLIMIT_DATA',
    'Max stack size': 'RLIMIT_STACK',
    'Max core file size': 'RLIMIT_CORE',
    'Max resident set': 'RLIMIT_RSS',
    'Max processes': 'RLIMIT_NPROC',
    'Max open files': 'RLIMIT_NOFILE',
    'Max locked memory': 'RLIMIT_MEMLOCK',
    'Max address space': 'RLIMIT_AS',
    'Max file locks': 'RLIMIT_LOCKS',
    'Max pending signals': 'RLIMIT_SIGPENDING',
    'Max msgqueue size': 'RLIMIT_MSGQUEUE',
    'Max nice priority': 'RLIMIT_NICE',
    'Max realtime priority': 'RLIMIT_RTPRIO',
    'Max realtime timeout': 'RLIMIT_RTTIME',
  }),
);

/**
 * The limits that the daemon itself runs under, in the units of setrlimit(2); `Infinity` where there is none.
 *
 * Without CAP_SYS_RESOURCE a container cannot be given more than these.
 */
export function hardLimits(): ReadonlyMap<string, Limit> {
  const limits = new Map<string, Limit>();
  for (const line of readFileSync('/proc/self/limits', 'utf8').split('\n')) {
    const name = LIMIT_NAMES.get(line.slice(0, 25).trimEnd());
    const [soft, hard] = line.slice(25).trim().split(/\s+/);
    if (name !== undefined && soft !== undefined && hard !== undefined) {
      limits.set(name, { soft: limitValue(soft), hard: limitValue(hard) });
    }
  }
  return limits;
}

function limitValue(written: string): number {
  return written === 'unlimited' ? Infinity : Number(written);
}

function maskOf(status: string, field: string): bigint {
  const hex = new RegExp(`^${field}:\\s*([0-9a-f]+)$`, 'm').exec(status)?.[1];
  return hex === undefined ? 0n : BigInt(`0x${hex}`);
}
