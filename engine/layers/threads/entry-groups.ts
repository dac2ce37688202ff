import type { ContextEntry } from './archive-messages.ts';

/**
 * A group has so many entries, with paths of so many letters, and so many are on their way: the daemon would stand still for
 * those of a large context, and both sides keep what young collections find as garbage of the whole heap.
 */
const [GROUP, GROUP_LENGTH, AHEAD] = [32, 32 * 1024, 8];

/** The entries of a context on their way to the daemon. */
export class EntryGroups {
  readonly #tell: (entries: ContextEntry[]) => void;
  #group: ContextEntry[] = [];
  #length = 0;
  #ahead = 0;
  #wake: (() => void) | undefined;

  constructor(tell: (entries: ContextEntry[]) => void) {
    this.#tell = tell;
  }

  add(entry: ContextEntry): void {
    this.#group.push(entry);
    this.#length += entry.path.length + entry.target.length;
    if (this.#group.length === GROUP || this.#length >= GROUP_LENGTH) this.flush();
  }

  flush(): void {
    this.#ahead += 1;
    this.#tell(this.#group);
    this.#group = [];
    this.#length = 0;
  }

  /** The daemon has taken a group. */
  taken(): void {
    this.#ahead -= 1;
    this.#wake?.();
  }

  /** Resolves when more groups may follow. */
  async ready(): Promise<void> {
    while (this.#ahead >= AHEAD) await new Promise<void>((resolve) => (this.#wake = resolve));
  }
}
