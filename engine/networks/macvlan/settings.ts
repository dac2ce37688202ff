import { MACVLAN_MODES } from '../../host/network/links.ts';
import { EngineError } from '../../lib/errors.ts';
import { mtuOption } from '../options.ts';
import type { NetworkRecord } from '../store.ts';

/** A network of the driver `macvlan`. */
export type MacvlanSettings = Readonly<{
  /** The link that carries the packets; without a parent a link of its own, which leads nowhere. */
  parent: string;
  mode: keyof typeof MACVLAN_MODES;
  /** 0: that of the parent. */
  mtu: number;
  /** Without a way out of the network. */
  isInternal: boolean;
}>;

const ID_LETTERS = 12;

/** The name of the link of a network without a parent, also in dockerd's messages. */
export function ownParentName(networkId: string): string {
  return `dm-${networkId.slice(0, ID_LETTERS)}`;
}

/** Throws for invalid options, in dockerd's words. */
export function macvlanSettings({ id, custom }: NetworkRecord): MacvlanSettings {
  const options = custom?.options ?? {};
  const mode = options.macvlan_mode || 'bridge';
  if (!isMode(mode)) {
    const reason = "'bridge' mode is the macvlan driver default";
    throw new EngineError('failed', `requested macvlan mode '${mode}' is not valid, ${reason}`);
  }
  const parent = options.parent || ownParentName(id);
  const isInternal = custom?.internal === true || !options.parent;
  return { parent, mode, mtu: mtuOption(options), isInternal };
}

function isMode(text: string): text is keyof typeof MACVLAN_MODES {
  return Object.hasOwn(MACVLAN_MODES, text);
}
