import { sharedWith } from '../lib/shared-namespace.ts';

/** HostConfig.NetworkMode, read once: whose network namespace a container has, and what that is connected with. */
export type NetworkMode =
  /** Its own, connected with a network that `ref` names: the bridge where the client said nothing. */
  | Readonly<{ kind: 'network'; ref: string }>
  /** The machine's. */
  | Readonly<{ kind: 'host' }>
  /** Its own, with loopback alone. */
  | Readonly<{ kind: 'none' }>
  /** Another container's; `ref` as the client wrote it, an id in a stored record. */
  | Readonly<{ kind: 'container'; ref: string }>;

export const DEFAULT_NETWORK = 'bridge';

export function networkModeOf(text: string): NetworkMode {
  const other = sharedWith(text);
  if (other !== undefined) return { kind: 'container', ref: other };
  if (text === 'host' || text === 'none') return { kind: text };
  return { kind: 'network', ref: text === '' || text === 'default' ? DEFAULT_NETWORK : text };
}

/** The network that a mode names; a container that shares another one's namespace has none of its own. */
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

/** Whether the container is on the network that those are on who asked for none. */
export function isDefaultNetwork(mode: NetworkMode): boolean {
  return mode.kind === 'network' && mode.ref === DEFAULT_NETWORK;
}
