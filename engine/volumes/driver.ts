import type { Volume } from './store.ts';

export type VolumeOptions = Readonly<Record<string, string>>;

/** The containers whose last run had the volume of this name, and may not be over. */
export type UsersOf = (volume: string) => readonly string[];

/**
 * A kind of volume: where its files are, and who keeps them.
 *
 * A driver may ask another process, so everything but its refusals may wait; each wait has a deadline of the driver's.
 * Nobody creates and removes the same volume at the same time.
 */
export type VolumeDriver = Readonly<{
  /** As a volume shows it, and as /info lists it. */
  name: string;
  /** How far the volumes are seen: on this machine, or on all of a cluster. */
  scope: 'local' | 'global';
  /** Refuses a name and options before anything is made; an empty name stands for one that the engine chooses. */
  check(name: string, options: VolumeOptions): void;
  /** Makes the place of the files. What is there already is no error. */
  create(volume: Volume): Promise<void>;
  /**
   * Takes the files away, and calls `forget`, which deletes the record, as soon as they are no volume any more: if that
   * throws, everything is where it was, as far as the driver can do that. What is gone already is no error.
   */
  remove(volume: Volume, forget: () => void): Promise<void>;
  /** Whether the files are at their path only while somebody has them mounted. */
  needsMount(volume: Volume): boolean;
  /** Makes the files available for one user, such as the run of a container, and says where they are. */
  mount(volume: Volume, user: string): Promise<string>;
  /** The run is over. What is not mounted is no error: a daemon that starts does not know how far the last one came. */
  unmount(volume: Volume, user: string): Promise<void>;
  /** Where the machine has the files; empty if it has them only while they are mounted. */
  path(volume: Volume): Promise<string>;
  /** What the driver tells of it beside that, in words of its own. */
  status?(volume: Volume): Promise<Readonly<Record<string, unknown>> | undefined>;
  /**
   * At the daemon's start, with all volumes of this driver: finishes what a killed daemon has left half done. `isKnown`
   * also knows the names of records that cannot be read: what is theirs stays. `usersOf`: who may have a volume mounted.
   */
  reconcile(volumes: readonly Volume[], isKnown: (name: string) => boolean, usersOf: UsersOf): Promise<void>;
}>;
