import type { SourceFound, SourcesWanted } from '../../copies/transfer/sources.ts';

/** Number of stored answers, and of sources in one: each is a few hundred bytes. */
const [MAX_COUNT, MAX_SOURCES] = [1000, 20];

type Found = Promise<readonly SourceFound[]>;

/** The checksums of files of images, for COPY --from: an image never changes, so what was hashed once is known. */
export class ImageSums {
  readonly #known = new Map<string, Found>();

  /** Those of the wanted files, or else what `compute` finds. Failures and long answers are not remembered. */
  async find(imageId: string, wanted: SourcesWanted, compute: () => Found): Found {
    const key = JSON.stringify([imageId, wanted]);
    const known = this.#known.get(key);
    this.#known.delete(key); // the last in the order of the map is the newest
    const found = known ?? compute();
    this.#known.set(key, found);
    this.#trim();
    try {
      const sources = await found;
      if (sources.length > MAX_SOURCES) this.#forget(key, found);
      return sources;
    } catch (error) {
      this.#forget(key, found);
      if (known === undefined) throw error;
      return await this.find(imageId, wanted, compute); // it was computed for another build, whose client may have left
    }
  }

  #forget(key: string, found: Found): void {
    if (this.#known.get(key) === found) this.#known.delete(key);
  }

  #trim(): void {
    if (this.#known.size <= MAX_COUNT) return;
    const [oldest] = this.#known.keys();
    this.#known.delete(oldest!);
  }
}
