import type { Engine } from '../engine.ts';
import { EngineError } from '../lib/errors.ts';
import { holdVolume } from './claims.ts';
import { noSuchVolume, type Volume } from './store.ts';

/** The containers that mount a volume: a function of the containers domain. */
export type VolumeUsage = Readonly<{
  usersOf(volume: string): readonly string[];
  /** Those of them that are running, or were when the last daemon ended. */
  runningUsersOf(volume: string): readonly string[];
  /** Whether a container's record cannot be decoded: then no volume is removed unless a client asks for it. */
  isIncomplete(): boolean;
}>;

export type RemoveVolumeNeeds = Pick<
  Engine,
  'db' | 'events' | 'locks' | 'volumes' | 'volumeDrivers' | 'volumeClaims' | 'volumeUsage'
>;

/**
 * Removes a volume. Throws `notFound` unless `force` is set, also if its plugin has lost it, and `conflict` while a container mounts it or is being created
 * with it.
 */
export async function removeVolume(engine: RemoveVolumeNeeds, name: string, { force = false } = {}): Promise<void> {
  using _lock = await holdVolume(engine, name);
  if (force && engine.volumes.get(name) === undefined) return;
  const volume = engine.volumes.find(name);
  const users = usersOf(engine, name);
  if (users.length > 0) throw new EngineError('conflict', `remove ${name}: volume is in use - [${users.join(', ')}]`);
  const wasThere = await removeHeld(engine, volume);
  if (!wasThere && !force) throw noSuchVolume(name);
}

/** Removes a volume that was made for one container only, unless a container still has it. */
export async function removeIfAnonymous(engine: RemoveVolumeNeeds, name: string): Promise<void> {
  using _lock = await holdVolume(engine, name);
  const volume = engine.volumes.get(name);
  if (volume?.anonymous !== true || usersOf(engine, name).length > 0 || engine.volumeUsage.isIncomplete()) return;
  await removeHeld(engine, volume);
}

/**
 * While its driver waits, nobody can begin to use it, because that needs the lock. Returns false if the driver did not
 * know it any more.
 */
async function removeHeld({ db, events, volumes, volumeDrivers }: RemoveVolumeNeeds, volume: Volume): Promise<boolean> {
  const { name, driver } = volume;
  return await volumeDrivers.find(driver).remove(volume, () =>
    db.transaction(() => {
      volumes.delete(name);
      events.emit('volume', 'destroy', name, { driver });
    }),
  );
}

function usersOf({ volumeUsage, volumeClaims }: RemoveVolumeNeeds, name: string): string[] {
  return [...new Set([...volumeUsage.usersOf(name), ...volumeClaims.usersOf(name)])];
}
