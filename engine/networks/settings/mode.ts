import { sharedWith } from '../../lib/shared-namespace.ts';

/** HostConfig.NetworkMode, parsed once: the owner of a container's network namespace, and its first network. */
export type NetworkMode =
  /** Its own namespace, connected to the network `ref`; the default is the bridge. */
  | Readonly<{ kind: 'network'; ref: string }>
  /** The machine's namespace. */
  | Readonly<{ kind: 'host' }>
  /** Its own namespace with loopback only. */
  | Readonly<{ kind: 'none' }>
  /** Another container's namespace; `ref` is what the client wrote, in a stored record an id. */
  | Readonly<{ kind: 'container'; ref: string }>;

export const DEFAULT_NETWORK = 'bridge';

const PREDEFINED_NAMES: ReadonlySet<string> = new Set([DEFAULT_NETWORK, 'host', 'none', 'default']);

/** Whether the name is reserved. */
export function isPredefinedName(name: string): boolean {
  return PREDEFINED_NAMES.has(name);
}

export function networkModeOf(text: string): NetworkMode {
  const other = sharedWith(text);
  if (other !== undefined) return { kind: 'container', ref: other };
  if (text === 'host' || text === 'none') return { kind: text };
  return { kind: 'network', ref: text === '' || text === 'default' ? DEFAULT_NETWORK : text };
}

/** The network that a mode names; undefined for a container that shares another one's namespace. */
export function networkOfMode(mode: NetworkMode): string | undefined {
  switch (mode.kind) {
    case 'network':
      return mode.ref;
    case 'host':
    case 'none':
      return mode.kind;
    case 'container':
      return undefined;
  }
}

/** Whether the mode selects the default network. */
export function isDefaultNetwork(mode: NetworkMode): boolean {
  return mode.kind === 'network' && mode.ref === DEFAULT_NETWORK;
}

/** Whether the mode selects a network that a user has made. */
export function isUserNetwork(mode: NetworkMode): boolean {
  return mode.kind === 'network' && !isPredefinedName(mode.ref);
}
