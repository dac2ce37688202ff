import type { Events } from '../events/events.ts';
import type { Clock } from '../lib/clock.ts';
import { EngineError } from '../lib/errors.ts';
import { newId } from '../lib/ids.ts';
import type { VolumeDriver, VolumeOptions } from './driver.ts';
import type { VolumeDrivers } from './drivers.ts';
import type { Volume, VolumeStore } from './store.ts';

type Needs = { volumes: VolumeStore; volumeDrivers: VolumeDrivers; clock: Clock; events: Events };

type Wanted = {
  name?: string;
  driver?: string;
  options?: VolumeOptions;
  labels?: Readonly<Record<string, string>>;
  /** For one container, which has not been made yet. */
  anonymous?: boolean;
};

/** Makes a volume, or returns the one that has the name already. Throws `invalid` and `notFound` (driver). */
export function createVolume(engine: Needs, wanted: Wanted): Volume {
  const { name = '', labels = {}, anonymous = false } = wanted;
  const driver = checkedDriver(engine, wanted);
  const existing = engine.volumes.get(name);
  if (existing !== undefined) return existing;
  const createdAt = engine.clock.now();
  const volume = { name: name === '' ? newId() : name, driver: driver.name, createdAt, labels, anonymous };
  driver.create(volume);
  engine.volumes.insert(volume);
  engine.events.emit('volume', 'create', volume.name, { driver: driver.name });
  return volume;
}

function checkedDriver({ volumeDrivers }: Needs, { name = '', driver = '', options = {} }: Wanted): VolumeDriver {
  try {
    const found = volumeDrivers.find(driver);
    found.check(name, options);
    return found;
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    throw new EngineError(error.kind, `create ${name}: ${error.message}`, { cause: error });
  }
}
