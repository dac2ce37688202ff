import { hasAppArmor, isProfileLoaded, loadProfile } from '../../host/confinement/apparmor.ts';
import { EngineError } from '../../lib/errors.ts';

const DEFAULT_PROFILE = 'gantry-default';
const UNCONFINED = 'unconfined';

let supported: boolean | undefined;

/** Read once: a kernel does not change. */
export function confinesByAppArmor(): boolean {
  supported ??= hasAppArmor();
  return supported;
}

/** The profile of a container, empty where the kernel has no AppArmor; `wanted` is '' for the usual one. */
export function appArmorProfile({ wanted, privileged }: { wanted: string; privileged: boolean }): string {
  if (!confinesByAppArmor()) return '';
  return wanted || (privileged ? UNCONFINED : DEFAULT_PROFILE);
}

/** At the daemon's start: replaces the profile of an older daemon. */
export async function loadUsualProfile(): Promise<void> {
  if (confinesByAppArmor()) await loadProfile(profileText());
}

/**
 * Loads the usual profile if it is missing: an update of the system may have removed it. Throws `invalid` for another
 * one that is not loaded; a stack of profiles, or one in a namespace, is left to the kernel.
 */
export async function ensureProfile(name: string): Promise<void> {
  if (name === '' || name === UNCONFINED || /[:&]/.test(name) || isProfileLoaded(name)) return;
  if (name !== DEFAULT_PROFILE) throw new EngineError('invalid', `the AppArmor profile ${name} is not loaded`);
  await loadProfile(profileText());
}

/**
 * Denies a container what its capabilities would allow: mounts, and writes to the kernel's settings in /proc and /sys.
 * The meaning is that of `docker-default` of dockerd 20.10. A deny rule overrides all that is allowed, and has no
 * exceptions. So the paths that stay open, cgroups and folders named by numbers, are excluded letter by letter.
 */
function profileText(): string {
  return `
#include <tunables/global>

profile ${DEFAULT_PROFILE} flags=(attach_disconnected,mediate_deleted) {
  #include <abstractions/base>

  capability,
  file,
  network,
  umount,

  # from the engine, from runtimes with profiles of their own, and among a container's processes
  signal (receive) peer=unconfined,
  signal (receive) peer=runc,
  signal (receive) peer=crun,
  signal (send, receive) peer=${DEFAULT_PROFILE},
  ptrace (read, readby, trace, tracedby) peer=${DEFAULT_PROFILE},

  deny mount,

  # /proc: only what belongs to processes
  deny @{PROC}/* w,
  deny @{PROC}/{[^1-9],[^1-9][^0-9],[^1-9s][^0-9y][^0-9s],[^1-9][^0-9][^0-9][^0-9/]*}/** w,
  deny @{PROC}/sys/** w,
  deny @{PROC}/{kcore,sysrq-trigger} rwklx,

  # /sys: only /sys/fs/cgroup
  deny /sys/[^f]*/** wklx,
  deny /sys/f[^s]*/** wklx,
  deny /sys/fs/[^c]*/** wklx,
  deny /sys/fs/c[^g]*/** wklx,
  deny /sys/fs/cg[^r]*/** wklx,
  deny /sys/{firmware,kernel/security,devices/virtual/powercap}/** rwklx,
}
`;
}
