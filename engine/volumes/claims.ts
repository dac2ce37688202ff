import { EngineError } from '../lib/errors.ts';
import type { KeyLock } from '../lib/key-lock.ts';
import type { VolumeStore } from './store.ts';

type Needs = { locks: KeyLock; volumes: VolumeStore; volumeClaims: VolumeClaims };

/** Volumes that containers are being created with, whose records do not say so yet: such a volume is not removed. */
export class VolumeClaims {
  readonly #usersByName = new Map<string, Set<string>>();

  add(volume: string, containerId: string): void {
    const users = this.#usersByName.get(volume) ?? new Set();
    this.#usersByName.set(volume, users.add(containerId));
  }

  /** The container's record names its volumes from now on, or there will be no container. */
  release(containerId: string): void {
    for (const [volume, users] of this.#usersByName) {
      if (users.delete(containerId) && users.size === 0) this.#usersByName.delete(volume);
    }
  }

  usersOf(volume: string): readonly string[] {
    return [...(this.#usersByName.get(volume) ?? [])];
  }
}

/** Holds what makes, claims or removes a volume of this name. It is held last: behind the lock of a container. */
export async function holdVolume({ locks }: Pick<Needs, 'locks'>, name: string): Promise<Disposable> {
  return await locks.hold(`volume ${name}`);
}

/** For a volume that another container has already. Throws `conflict` if it is removed meanwhile. */
export async function claimVolume(engine: Needs, name: string, containerId: string): Promise<void> {
  using _lock = await holdVolume(engine, name);
  if (!engine.volumes.isKnown(name)) throw new EngineError('conflict', `volume ${name} was removed meanwhile`);
  engine.volumeClaims.add(name, containerId);
}
