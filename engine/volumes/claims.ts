import type { Engine } from '../engine.ts';
import { EngineError } from '../lib/errors.ts';

type Needs = Pick<Engine, 'locks' | 'volumes' | 'volumeClaims'>;

/** The volumes of containers that are being created and have no record yet: such a volume is not removed. */
export class VolumeClaims {
  readonly #usersByName = new Map<string, Set<string>>();

  add(volume: string, containerId: string): void {
    const users = this.#usersByName.get(volume) ?? new Set();
    this.#usersByName.set(volume, users.add(containerId));
  }

  /** To be called when the container's record names its volumes, or when its creation has failed. */
  release(containerId: string): void {
    for (const [volume, users] of this.#usersByName) {
      if (users.delete(containerId) && users.size === 0) this.#usersByName.delete(volume);
    }
  }

  usersOf(volume: string): readonly string[] {
    return [...(this.#usersByName.get(volume) ?? [])];
  }
}

/**
 * The lock of a volume's name, for its creation, claims and removal. It is taken last, after the lock of a container.
 */
export async function holdVolume({ locks }: Pick<Needs, 'locks'>, name: string): Promise<Disposable> {
  return await locks.hold(`volume ${name}`);
}

/** For a volume of another container. Throws `conflict` if it is removed meanwhile. */
export async function claimVolume(engine: Needs, name: string, containerId: string): Promise<void> {
  using _lock = await holdVolume(engine, name);
  if (!engine.volumes.isKnown(name)) throw new EngineError('conflict', `volume ${name} was removed meanwhile`);
  engine.volumeClaims.add(name, containerId);
}
