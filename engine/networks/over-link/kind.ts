import type { Message } from '../../host/network/netlink.ts';
import type { NetworkRecord } from '../store.ts';

const ID_LETTERS = 12;

/** A link over another one. */
type NewLink = Readonly<{
  name: string;
  /** Index of the link beneath. */
  parent: number;
  mac: string;
  /** An open descriptor of the namespace that it is made in. */
  netns: number;
}>;

/** A network of links over a link of the machine. */
export type LinkSettings = Readonly<{
  /** The link that carries the packets; without a parent a link of its own, which leads nowhere. */
  parent: string;
  /** Without a way out of the network. */
  isInternal: boolean;
  /** Whether an endpoint's link is itself the way out, without a gateway. */
  isWayOut: boolean;
  create: (link: NewLink) => Message;
}>;

/** A kind of such links: a driver of networks. */
export type LinkKind = Readonly<{
  name: 'macvlan' | 'ipvlan';
  /** Prefix of the names of parents of its own. */
  prefix: 'dm-' | 'di-';
  /** Whether an endpoint's link has a hardware address of its own, not its parent's. */
  hasHardwareAddress: boolean;
  /** Throws for invalid options, in dockerd's words. */
  settings: (network: NetworkRecord) => LinkSettings;
}>;

/** The name of the link of a network without a parent, also in dockerd's messages. */
export function ownParentName({ prefix }: Pick<LinkKind, 'prefix'>, networkId: string): string {
  return `${prefix}${networkId.slice(0, ID_LETTERS)}`;
}

/** The parent that a network names, or one of its own, which leads nowhere. */
export function parentOf(
  kind: Pick<LinkKind, 'prefix'>,
  { id, custom }: NetworkRecord,
): Pick<LinkSettings, 'parent' | 'isInternal'> {
  const named = custom?.options.parent ?? '';
  if (named === '') return { parent: ownParentName(kind, id), isInternal: true };
  return { parent: named, isInternal: custom?.internal === true };
}
