import type { Engine } from '../../../engine.ts';
import { settlesWithin, type Clock } from '../../../lib/clock.ts';
import type { Task } from '../../../lib/concurrency/background.ts';
import type { VolumeStore } from '../../../volumes/store.ts';
import type { Container, MountPoint } from '../../store.ts';

export type VolumeMountNeeds = Pick<Engine, 'background' | 'volumes' | 'volumeDrivers'>;

const RELEASE_TIMEOUT_SECONDS = 10;

type Mounting = Pick<Container, 'id' | 'mounts'>;

/**
 * Has the drivers mount the container's volumes, one after the other: the mounts with the places of their files.
 * `unmountVolumes` undoes it, also if it came only half way.
 */
export async function mountVolumes(engine: VolumeMountNeeds, { id, mounts }: Mounting): Promise<MountPoint[]> {
  const mounted: MountPoint[] = [];
  for (const mount of mounts) {
    const volume = volumeOf(engine, mount);
    const driver = volume && (await engine.volumeDrivers.available(volume.driver));
    mounted.push(driver === undefined ? mount : { ...mount, source: await driver.mount(volume!, id) });
  }
  return mounted;
}

/** Unmounts the volumes after a run; failures are retried until they succeed. */
export function unmountVolumes(engine: VolumeMountNeeds, { id, mounts }: Mounting): Task {
  const about = { container: id };
  const mounted = mounts.map((mount) => volumeOf(engine, mount)).filter((volume) => volume !== undefined);
  const tasks = mounted.map(async (volume) => {
    await engine.background.untilDone('unmount a volume', { ...about, volume: volume.name }, async () => {
      await engine.volumeDrivers.find(volume.driver).unmount(volume, id);
    }).done;
  });
  return { done: Promise.all(tasks).then(() => undefined) };
}

/** Like `unmountVolumes`, for work that a client waits for: it waits 10 seconds for a driver, and then retries in the background. */
export async function releaseVolumes(engine: VolumeMountNeeds & { clock: Clock }, user: Mounting): Promise<void> {
  await settlesWithin(unmountVolumes(engine, user).done, RELEASE_TIMEOUT_SECONDS, engine.clock);
}

/** None if its record cannot be read: the container then has it at its first path. */
function volumeOf({ volumes }: VolumeMountNeeds, { type, name = '' }: MountPoint): ReturnType<VolumeStore['get']> {
  return type === 'volume' ? volumes.get(name) : undefined;
}
