import type { Engine } from '../engine.ts';
import { EngineError } from '../lib/errors.ts';
import { newId } from '../lib/ids.ts';
import { refuseManyLabels } from '../records/labels.ts';
import { holdVolume } from './claims.ts';
import type { VolumeDriver, VolumeOptions } from './driver.ts';
import type { Volume } from './store.ts';

/** The label of volumes without a name of the client, as in dockerd. */
export const ANONYMOUS_LABEL = 'com.docker.volume.anonymous';

export type CreateVolumeNeeds = Pick<
  Engine,
  'clock' | 'db' | 'events' | 'locks' | 'volumes' | 'volumeDrivers' | 'volumeClaims'
>;

type Wanted = {
  name?: string;
  driver?: string;
  options?: VolumeOptions;
  labels?: Readonly<Record<string, string>>;
  /** For one container, which does not exist yet. */
  anonymous?: boolean;
  /** The id of the container that is being created with it, and claims it. */
  claimedBy?: string;
};

/**
 * Creates a volume, or returns the existing one of this name. Throws `invalid`, `notFound` (driver), and `conflict` if
 * the volume of this name has a record that cannot be read.
 */
export async function createVolume(engine: CreateVolumeNeeds, wanted: Wanted): Promise<Volume> {
  refuseManyLabels(wanted.labels, 'the volume');
  const driver = await checkedDriver(engine, wanted);
  const name = wanted.name === undefined || wanted.name === '' ? newId() : wanted.name;
  using _lock = await holdVolume(engine, name);
  const known = engine.volumes.get(name);
  if (known !== undefined && (wanted.driver ?? '') !== '' && known.driver !== driver.name) {
    throw new EngineError('conflict', `create ${name}: volume name must be unique: its driver is "${known.driver}"`);
  }
  const volume = known ?? (await make(engine, driver, name, wanted));
  if (wanted.claimedBy !== undefined) engine.volumeClaims.add(name, wanted.claimedBy);
  return volume;
}

async function make(engine: CreateVolumeNeeds, driver: VolumeDriver, name: string, wanted: Wanted): Promise<Volume> {
  const { anonymous = false, options } = wanted;
  const isNamed = !anonymous && (wanted.name ?? '') !== '';
  const labels = isNamed ? (wanted.labels ?? {}) : { ...wanted.labels, [ANONYMOUS_LABEL]: '' };
  if (engine.volumes.isKnown(name)) {
    throw new EngineError('conflict', `create ${name}: the record of this volume cannot be read`);
  }
  const made = { name, driver: driver.name, createdAt: engine.clock.now(), labels, anonymous };
  const volume = options === undefined ? made : { ...made, options: { ...options } };
  try {
    await driver.create(volume);
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    throw new EngineError(error.kind, `create ${name}: ${error.message}`, { cause: error });
  }
  // A daemon that dies before the commit leaves the driver's volume: the next create of this name finds it.
  engine.db.transaction(() => {
    engine.volumes.insert(volume);
    engine.events.emit('volume', 'create', name, { driver: driver.name });
  });
  return volume;
}

async function checkedDriver(
  { volumeDrivers }: CreateVolumeNeeds,
  { name = '', driver = '', options = {} }: Wanted,
): Promise<VolumeDriver> {
  try {
    const found = await volumeDrivers.available(driver);
    found.check(name, options);
    return found;
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    throw new EngineError(error.kind, `create ${name}: ${error.message}`, { cause: error });
  }
}
