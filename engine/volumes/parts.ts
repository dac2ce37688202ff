import type { Config } from '../config/daemon-config.ts';
import type { Database } from '../db/database.ts';
import type { Plugins } from '../plugins/plugins.ts';
import { VolumeClaims } from './claims.ts';
import { VolumeDrivers } from './drivers.ts';
import { LocalVolumes } from './local/local.ts';
import { VolumeStore } from './store.ts';

type FailureLog = ConstructorParameters<typeof LocalVolumes>[1];
type Needs = { config: Config; db: Database; log: FailureLog; plugins: Plugins };
type VolumeParts = { volumes: VolumeStore; volumeDrivers: VolumeDrivers; volumeClaims: VolumeClaims };

/** The parts that this domain adds to the engine. The stack ends them. */
export function volumeParts({ config, db, log, plugins }: Needs, undo: AsyncDisposableStack): VolumeParts {
  const local = undo.use(new LocalVolumes(config.dataRoot, log));
  return {
    volumes: new VolumeStore(db),
    volumeDrivers: new VolumeDrivers(local, plugins),
    volumeClaims: new VolumeClaims(),
  };
}
