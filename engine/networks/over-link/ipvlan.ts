import { createIpvlan, IPVLAN_MODES } from '../../host/network/links.ts';
import { EngineError } from '../../lib/errors.ts';
import type { NetworkRecord } from '../store.ts';
import { parentOf, type LinkKind, type LinkSettings } from './kind.ts';

/** Containers have addresses of their own at the parent's hardware address; in the mode `l3` the parent routes. */
export const ipvlan: LinkKind = { name: 'ipvlan', prefix: 'di-', hasHardwareAddress: false, settings };

function settings(network: NetworkRecord): LinkSettings {
  const mode = network.custom?.options.ipvlan_mode || 'l2';
  if (!isMode(mode)) {
    const reason = "'l2' mode is the ipvlan driver default";
    throw new EngineError('failed', `requested ipvlan mode '${mode}' is not valid, ${reason}`);
  }
  const create: LinkSettings['create'] = ({ name, parent, netns }) => createIpvlan({ name, parent, netns, mode });
  return { ...parentOf(ipvlan, network), isWayOut: mode === 'l3', create };
}

function isMode(text: string): text is keyof typeof IPVLAN_MODES {
  return Object.hasOwn(IPVLAN_MODES, text);
}
