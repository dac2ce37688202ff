import type { Volume } from './store.ts';

export type VolumeOptions = Readonly<Record<string, string>>;

/** A kind of volume: where its files are, and who keeps them. */
export type VolumeDriver = Readonly<{
  /** As a volume shows it, and as /info lists it. */
  name: string;
  /** How far the volumes are seen: on this machine, or on all of a cluster. */
  scope: 'local' | 'global';
  /** Refuses a name and options before anything is made; an empty name stands for one that the engine chooses. */
  check(name: string, options: VolumeOptions): void;
  /** Makes the place of the files. What is there already is no error. */
  create(volume: Volume): void;
  /** Takes the files away, and calls `forget` in between: when that throws, everything is where it was. */
  remove(volume: Volume, forget: () => void): void;
  /** Where the machine has the files. */
  mountpoint(volume: Volume): string;
  /**
   * At the daemon's start, with all volumes of this driver: finishes what a killed daemon has left half done. `isKnown`
   * also knows the names of records that cannot be read: what is theirs stays.
   */
  reconcile(volumes: readonly Volume[], isKnown: (name: string) => boolean): void;
}>;
