import { renameSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';

import type { Events } from '../events/events.ts';
import { EngineError } from '../lib/errors.ts';
import { newId } from '../lib/ids.ts';
import { TRASH } from './reconcile.ts';
import type { VolumeStore } from './store.ts';

/** Which containers mount a volume: a function of the containers domain. */
export type VolumeUsage = Readonly<{ usersOf(volume: string): readonly string[] }>;
type Needs = { volumes: VolumeStore; events: Events; volumeUsage: VolumeUsage };

/** Removes a volume with its files. Throws `notFound`, and `conflict` while a container mounts it. */
export async function removeVolume(engine: Needs, name: string): Promise<void> {
  const volume = engine.volumes.find(name);
  const users = engine.volumeUsage.usersOf(volume.name);
  if (users.length > 0) throw new EngineError('conflict', `remove ${name}: volume is in use - [${users.join(', ')}]`);
  // Out of sight first: what a crash leaves there is known to be unwanted.
  const trash = join(engine.volumes.directory, `${TRASH}${newId()}`);
  renameSync(join(engine.volumes.directory, volume.name), trash);
  engine.volumes.delete(volume.name);
  await rm(trash, { recursive: true, force: true });
  engine.events.emit('volume', 'destroy', volume.name, { driver: 'local' });
}
