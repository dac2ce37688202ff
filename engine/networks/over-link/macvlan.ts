import { createMacvlan, MACVLAN_MODES } from '../../host/network/links.ts';
import { EngineError } from '../../lib/errors.ts';
import { mtuOption } from '../settings/options.ts';
import type { NetworkRecord } from '../store.ts';
import { parentOf, type LinkKind, type LinkSettings } from './kind.ts';

/** Containers look like machines in the network of the parent. */
export const macvlan: LinkKind = { name: 'macvlan', prefix: 'dm-', hasHardwareAddress: true, settings };

function settings(network: NetworkRecord): LinkSettings {
  const options = network.custom?.options ?? {};
  const mode = options.macvlan_mode || 'bridge';
  if (!isMode(mode)) {
    const reason = "'bridge' mode is the macvlan driver default";
    throw new EngineError('failed', `requested macvlan mode '${mode}' is not valid, ${reason}`);
  }
  /** 0: that of the parent. */
  const mtu = mtuOption(options);
  const create: LinkSettings['create'] = (link) => createMacvlan({ ...link, mode, ...(mtu > 0 && { mtu }) });
  return { ...parentOf(macvlan, network), isWayOut: false, create };
}

function isMode(text: string): text is keyof typeof MACVLAN_MODES {
  return Object.hasOwn(MACVLAN_MODES, text);
}
