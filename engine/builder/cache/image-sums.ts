import type { SourceFound, SourcesWanted } from '../../copies/transfer/sources.ts';

/** Number of stored answers, each of which is a few hundred bytes. */
const MAX_COUNT = 1000;

type Found = Promise<readonly SourceFound[]>;

/** The checksums of files of images, for COPY --from: an image never changes, so what was hashed once is known. */
export class ImageSums {
  readonly #known = new Map<string, Found>();

  /** Those of the wanted files, or else what `compute` finds. A failure is not remembered. */
  async find(imageId: string, wanted: SourcesWanted, compute: () => Found): Found {
    const key = JSON.stringify([imageId, wanted]);
    const known = this.#known.get(key);
    this.#known.delete(key); // the last in the order of the map is the newest
    const found = known ?? compute();
    this.#known.set(key, found);
    this.#trim();
    try {
      return await found;
    } catch (error) {
      if (this.#known.get(key) === found) this.#known.delete(key);
      throw error;
    }
  }

  #trim(): void {
    if (this.#known.size <= MAX_COUNT) return;
    const [oldest] = this.#known.keys();
    this.#known.delete(oldest!);
  }
}
