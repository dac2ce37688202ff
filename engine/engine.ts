import type { Logger } from 'pino';

import type { Config } from './config/config.ts';
import type { Database } from './db/database.ts';
import type { Events } from './events/events.ts';
import type { ImageStore } from './images/store.ts';
import type { ImageUsage } from './images/usage.ts';
import type { Archives } from './layers/archives.ts';
import type { Blobs } from './layers/blobs.ts';
import type { Layers } from './layers/layers.ts';
import type { Clock } from './lib/clock.ts';
import type { KeyLock } from './lib/key-lock.ts';

/** The parts of the engine. Operations name the few that they use; only routes and `start.ts` see all of them. */
export type Engine = Readonly<{
  /** Replaced as a whole by a reload: read it when it is needed, keep no copy. */
  config: Config;
  clock: Clock;
  log: Logger;
  db: Database;
  /** One key per object, its full id. */
  locks: KeyLock;
  events: Events;
  blobs: Blobs;
  archives: Archives;
  layers: Layers;
  images: ImageStore;
  /** Asked before an image is removed. */
  imageUsage: ImageUsage;
}>;
