import type { Events } from '../events/events.ts';
import { EngineError } from '../lib/errors.ts';
import type { VolumeDrivers } from './drivers.ts';
import type { VolumeStore } from './store.ts';

/** Which containers mount a volume: a function of the containers domain. */
export type VolumeUsage = Readonly<{
  usersOf(volume: string): readonly string[];
  /** Whether a container's record cannot be decoded: then no volume is removed unless a client asks for it. */
  isIncomplete(): boolean;
}>;
type Needs = { volumes: VolumeStore; volumeDrivers: VolumeDrivers; events: Events; volumeUsage: VolumeUsage };

/** Removes a volume. Throws `notFound`, and `conflict` while a container mounts it. */
// oxlint-disable-next-line require-await -- a promise by contract, so that errors come one way
export async function removeVolume(engine: Needs, name: string): Promise<void> {
  const volume = engine.volumes.find(name);
  const users = engine.volumeUsage.usersOf(volume.name);
  if (users.length > 0) throw new EngineError('conflict', `remove ${name}: volume is in use - [${users.join(', ')}]`);
  engine.volumeDrivers.find(volume.driver).remove(volume, () => engine.volumes.delete(volume.name));
  engine.events.emit('volume', 'destroy', volume.name, { driver: volume.driver });
}
