import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';

import { applyChanges } from '@gantry/engine/buildfile/changes.ts';
import { Database } from '@gantry/engine/db/database.ts';
import { Events, type EngineEvent } from '@gantry/engine/events/events.ts';
import { loadImages } from '@gantry/engine/images/archives/load.ts';
import { importImage } from '@gantry/engine/images/import/import.ts';
import { parseImportName } from '@gantry/engine/images/names/reference.ts';
import type { Progress } from '@gantry/engine/images/progress/progress.ts';
import { ImageStore, type Image } from '@gantry/engine/images/store.ts';
import { Blobs } from '@gantry/engine/layers/blobs.ts';
import { Layers } from '@gantry/engine/layers/layers.ts';
import type { ArchiveLimits } from '@gantry/engine/layers/tar/tar-reader.ts';
import { Archives } from '@gantry/engine/layers/threads/archives.ts';
import { systemClock } from '@gantry/engine/lib/clock.ts';
import { Background } from '@gantry/engine/lib/concurrency/background.ts';
import { KeyLock } from '@gantry/engine/lib/concurrency/key-lock.ts';
import { EMPTY_CONFIG } from '@gantry/engine/records/run-config.ts';

type Options = { directory?: string; limits?: ArchiveLimits };

/** The parts of the engine that images need, in a folder of their own, for tests. */
export class TestImages implements AsyncDisposable {
  readonly directory: string;
  readonly clock = systemClock;
  readonly locks = new KeyLock();
  readonly db: Database;
  readonly events: Events;
  readonly blobs: Blobs;
  readonly archives: Archives;
  readonly layers: Layers;
  readonly images: ImageStore;
  /** The containers that use images, set by tests. */
  readonly users: { id: string; running: boolean; image: string }[] = [];
  readonly imageUsage = {
    usedBy: (imageId: string) => this.users.filter(({ image }) => image === imageId),
    counts: () => {
      const byImage = Map.groupBy(this.users, ({ image }) => image);
      return new Map([...byImage].map(([image, users]) => [image, users.length] as const));
    },
  };
  readonly #ownsDirectory: boolean;

  constructor({ directory, limits }: Options = {}) {
    this.#ownsDirectory = directory === undefined;
    this.directory = directory ?? mkdtempSync(join(tmpdir(), 'gantry-images-'));
    this.db = new Database(join(this.directory, 'gantry.db'));
    this.events = new Events(this.db, this.clock, { error: console.error });
    this.blobs = new Blobs(this.directory);
    this.archives = new Archives(new Background(this.clock, { error: console.error }), { limits });
    this.layers = new Layers(this.db, this.blobs, this.directory, {
      warn: (details) => {
        throw new Error('a folder could not be removed', { cause: details });
      },
    });
    this.images = new ImageStore(this.db, this.layers);
  }

  /** Loads an archive; returns the lines that a client would get. */
  async load(archive: Uint8Array): Promise<Progress[]> {
    const lines: Progress[] = [];
    await loadImages(this, chunked(archive), (line) => lines.push(line));
    return lines;
  }

  async import(archive: Uint8Array, name?: string, changes: readonly string[] = []): Promise<Image> {
    return await importImage(this, chunked(archive), {
      config: applyChanges(changes, EMPTY_CONFIG),
      message: 'a test',
      name: parseImportName(name),
    });
  }

  /** The folder of an image's topmost layer. */
  topFolder(image: Image): string {
    return join(this.layers.folders.directory, this.layers.get(image.layers.at(-1)!)!.folder);
  }

  happened(): readonly EngineEvent[] {
    return this.events.after(0, 1000);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.layers.settled();
    await this.archives[Symbol.asyncDispose]();
    this.db[Symbol.dispose]();
    if (this.#ownsDirectory) rmSync(this.directory, { recursive: true, force: true });
  }
}

/** In pieces of arbitrary size, like from a socket. */
export function chunked(content: Uint8Array, bytes = 65_521): Readable {
  return Readable.from(
    (function* pieces() {
      for (let at = 0; at < content.length; at += bytes) yield content.subarray(at, at + bytes);
    })(),
  );
}
