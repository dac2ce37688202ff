import { closeSync } from 'node:fs';

import type { NetworkDriver } from '../drivers/driver.ts';
import { userNetns } from '../endpoints/namespace.ts';
import type { Overlays } from './overlays.ts';

/** Docker's option with the number of an overlay. */
export const VNI_OPTION = 'com.docker.network.driver.overlay.vxlanid_list';

/** The driver `overlay`: networks of a cluster, made by its managers, for containers of its tasks. */
export function overlayDriver(overlays: Overlays): NetworkDriver {
  return {
    name: 'overlay',
    join: (network, wanted) => {
      using undo = new DisposableStack();
      const netns = userNetns();
      undo.defer(() => closeSync(netns));
      const place = overlays.join(network, wanted, netns);
      undo.move();
      return { netns, place };
    },
    joinInto: (network, wanted, { netns }) => overlays.join(network, wanted, netns),
    leave: (network, left, within) => overlays.leave(network, left, within !== undefined),
    leadsOut: () => false,
    options: ({ custom, overlay }) => ({ [VNI_OPTION]: String(overlay?.vni), ...custom?.options }),
  };
}
