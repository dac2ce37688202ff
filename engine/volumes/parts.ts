import type { Engine } from '../engine.ts';
import { VolumeClaims } from './claims.ts';
import { VolumeDrivers } from './drivers.ts';
import { LocalVolumes } from './local/local.ts';
import { VolumeStore } from './store.ts';

type FailureLog = ConstructorParameters<typeof LocalVolumes>[1];
type Needs = Pick<Engine, 'config' | 'db' | 'plugins'> & { log: FailureLog };
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
