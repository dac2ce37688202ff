import type { HistoryEntry, ImageConfig } from './image-config.ts';

/** Characters of the texts whose parsed forms are kept: a parsed form takes some six times the memory of its text. */
const MAX_KEPT_LENGTH = 2 * 1024 * 1024;

/** The parts of a configuration that may be large, and that lists and searches do without. */
export type ParsedSettings = Readonly<{
  config: ImageConfig;
  /** The image's `config` and `container_config`, for fields that only an inspect shows. */
  wireConfig: Readonly<Record<string, unknown>>;
  wireContainerConfig: Readonly<Record<string, unknown>>;
  history: readonly HistoryEntry[];
}>;

/** The settings of images that were used last; others are parsed again, because all of them would take too much memory. */
export class RecentSettings {
  readonly #kept = new Map<string, { settings: ParsedSettings; length: number }>();
  #length = 0;

  /** The settings of the image with this id, of a text of `length` characters. */
  get(id: string, length: number, parse: () => ParsedSettings): ParsedSettings {
    const kept = this.#kept.get(id) ?? { settings: parse(), length };
    if (this.#kept.delete(id)) this.#length -= kept.length;
    this.#kept.set(id, kept);
    this.#length += length;
    for (const [other, { length: freed }] of this.#kept) {
      if (this.#length <= MAX_KEPT_LENGTH || other === id) break;
      this.#kept.delete(other);
      this.#length -= freed;
    }
    return kept.settings;
  }
}
