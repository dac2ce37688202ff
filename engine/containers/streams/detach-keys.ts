import { EngineError } from '../../lib/errors.ts';

const DEFAULT = 'ctrl-p,ctrl-q';

/**
 * The bytes that `ctrl-p,ctrl-q` or `a,b` stand for; an empty text is the default.
 *
 * A comma separates keys, and `ctrl-,` is one: the specification lists it. Throws `invalid`.
 */
export function parseDetachKeys(written = ''): Buffer {
  const text = written === '' ? DEFAULT : written;
  if (!/^(?:(?:ctrl-[a-z@[\\\]^_,]|[\x20-\x2b\x2d-\x7e])(?:,(?!$)|$))+$/.test(text)) {
    throw new EngineError('invalid', `Invalid detach keys (${written}) provided`);
  }
  const keys = text.match(/ctrl-.|[^,](?=,|$)/g) ?? [];
  return Buffer.from(keys.map((key) => (key.length === 1 ? key.charCodeAt(0) : key.charCodeAt(5) & 0x1f)));
}

/** Finds the keys in the client's input, across chunks; an incomplete sequence is passed on. */
export class DetachDetector {
  readonly #keys: Buffer;
  /** The number of keys seen so far, which are held back. */
  #matched = 0;

  constructor(keys: Buffer) {
    this.#keys = keys;
  }

  /** The bytes to pass on, and whether the keys were found. */
  push(chunk: Buffer): { passed: Buffer; detached: boolean } {
    if (this.#matched === 0 && !chunk.includes(this.#keys[0]!)) return { passed: chunk, detached: false };
    const held = this.flush();
    const typed = Buffer.concat([held, chunk]);
    const found = typed.indexOf(this.#keys);
    if (found !== -1) return { passed: typed.subarray(0, found), detached: true };
    this.#matched = this.#beginningAtEnd(typed);
    return { passed: typed.subarray(0, typed.length - this.#matched), detached: false };
  }

  /** The bytes held back; at the end of stdin they are ordinary input. */
  flush(): Buffer {
    const held = this.#keys.subarray(0, this.#matched);
    this.#matched = 0;
    return held;
  }

  /** The length of the longest prefix of the keys at the end of the typed bytes. */
  #beginningAtEnd(typed: Buffer): number {
    for (let length = Math.min(this.#keys.length - 1, typed.length); length > 0; length -= 1) {
      if (typed.subarray(typed.length - length).equals(this.#keys.subarray(0, length))) return length;
    }
    return 0;
  }
}
