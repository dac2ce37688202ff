import type { Volume } from './store.ts';

export type VolumeOptions = Readonly<Record<string, string>>;

/** The containers that have used the volume of this name in their last run, which may still be going on. */
export type UsersOf = (volume: string) => readonly string[];

export type VolumeFacts = Readonly<{
  /** The files on this machine; empty if they have a path only while they are mounted. */
  path: string;
  /** More from the driver, under its own names. */
  status?: Readonly<Record<string, unknown>>;
}>;

/**
 * A kind of volume: where its files are, and who keeps them.
 *
 * A driver may ask another process, so all calls but `check` may wait; the driver sets a deadline for each wait. Nobody
 * creates and removes the same volume at the same time.
 */
export type VolumeDriver = Readonly<{
  /** As a volume shows it, and as /info lists it. */
  name: string;
  /** Whether the volumes are visible on this machine only, or in the whole cluster. */
  scope: 'local' | 'global';
  /** Refuses a name and options before anything is made; an empty name stands for one that the engine chooses. */
  check(name: string, options: VolumeOptions): void;
  /** Creates the place of the files. An existing one is not an error. */
  create(volume: Volume): Promise<void>;
  /**
   * Removes the files, and calls `forget`, which deletes the record, as soon as the volume is gone: if that throws, the
   * driver restores the volume as far as it can. Missing files are not an error. Returns false if the driver did not know
   * the volume any more.
   */
  remove(volume: Volume, forget: () => void): Promise<boolean>;
  /** Whether the files are at their path only while a user has them mounted. */
  needsMount(volume: Volume): boolean;
  /** Makes the files available for one user, such as the run of a container, and says where they are. */
  mount(volume: Volume, user: string): Promise<string>;
  /**
   * The run is over. A volume that is not mounted is not an error: a daemon that starts does not know how far the last
   * one got.
   */
  unmount(volume: Volume, user: string): Promise<void>;
  /** Undefined if the driver does not know the volume any more. */
  look(volume: Volume): Promise<VolumeFacts | undefined>;
  /**
   * At the daemon's start, with all volumes of this driver: finishes the interrupted work of a killed daemon. `isKnown`
   * also knows the names of records that cannot be read: their files stay. `usersOf`: the containers that may have a
   * volume mounted.
   */
  reconcile(volumes: readonly Volume[], isKnown: (name: string) => boolean, usersOf: UsersOf): Promise<void>;
}>;
