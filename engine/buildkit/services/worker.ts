import type { Engine } from '../../engine.ts';
import { goArchitecture } from '../../images/configuration/architecture.ts';
import { VERSION } from '../../version.ts';
import type { Worker } from '../messages/common.ts';
import type { Sent } from '../wire/message.ts';

export const BUILDER_VERSION = { package: 'gantry', version: `v${VERSION}`, revision: VERSION };

/** The one worker: this machine. Without the label of a snapshotter clients ask for images in the engine's store and for files alone. */
export function workerOf({ daemonId }: Pick<Engine, 'daemonId'>): Sent<typeof Worker> {
  return {
    id: daemonId,
    labels: new Map([
      ['org.mobyproject.buildkit.worker.executor', 'containers'],
      ['org.mobyproject.buildkit.worker.snapshotter', 'overlayfs'],
      ['org.mobyproject.buildkit.worker.moby.host-gateway-ip', ''],
    ]),
    platforms: [{ os: 'linux', architecture: goArchitecture() }],
    version: BUILDER_VERSION,
  };
}
