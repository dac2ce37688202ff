import { CAPABILITY_NAMES } from '../../host/confinement/privileges.ts';
import { EngineError } from '../../lib/errors.ts';

/** The default capabilities of a container: dockerd's fourteen. */
const DEFAULTS = [
  'CAP_CHOWN',
  'CAP_DAC_OVERRIDE',
  'CAP_FSETID',
  'CAP_FOWNER',
  'CAP_MKNOD',
  'CAP_NET_RAW',
  'CAP_SETGID',
  'CAP_SETUID',
  'CAP_SETFCAP',
  'CAP_SETPCAP',
  'CAP_NET_BIND_SERVICE',
  'CAP_SYS_CHROOT',
  'CAP_KILL',
  'CAP_AUDIT_WRITE',
];

type Wanted = { add: readonly string[] | null; drop: readonly string[] | null; privileged: boolean };

/** The capabilities a container asks for; `ALL` stands for every one. Throws `invalid` for an unknown name. */
export function wantedCapabilities({ add, drop, privileged }: Wanted): string[] {
  if (privileged) return [...CAPABILITY_NAMES];
  const added = new Set((add ?? []).map((name) => capabilityName('CapAdd', name)));
  const dropped = new Set((drop ?? []).map((name) => capabilityName('CapDrop', name)));
  const base = added.has('ALL') ? CAPABILITY_NAMES : dropped.has('ALL') ? [] : DEFAULTS;
  const kept = base.filter((name) => !dropped.has(name));
  const named = [...added].filter((name) => name !== 'ALL' && !kept.includes(name));
  return [...kept, ...named];
}

function capabilityName(field: string, written: string): string {
  const upper = written.toUpperCase();
  const name = upper === 'ALL' || upper.startsWith('CAP_') ? upper : `CAP_${upper}`;
  if (name !== 'ALL' && !(CAPABILITY_NAMES as readonly string[]).includes(name)) {
    throw new EngineError('invalid', `invalid ${field}: unknown capability: "${name}"`);
  }
  return name;
}
