import { EngineError } from '../lib/errors.ts';

const DEFAULT = 'ctrl-p,ctrl-q';
const CONTROL: Readonly<Record<string, number>> = { '@': 0, '[': 27, '\\': 28, ']': 29, '^': 30, _: 31 };

/** The bytes of `ctrl-p,ctrl-q` or `a`; an empty text is the default. Throws `invalid`. */
export function parseDetachKeys(written = ''): Buffer {
  const keys = (written === '' ? DEFAULT : written).split(',').map((key) => {
    const code = key.length === 1 ? key.charCodeAt(0) : controlCode(key);
    if (code === undefined || code > 127) throw new EngineError('invalid', `Invalid detach keys (${written}) provided`);
    return code;
  });
  return Buffer.from(keys);
}

function controlCode(key: string): number | undefined {
  const letter = /^ctrl-(.)$/.exec(key)?.[1];
  if (letter === undefined) return undefined;
  return /[a-z]/.test(letter) ? letter.charCodeAt(0) - 96 : CONTROL[letter];
}

/** Finds the keys in what a client types, however it is cut into pieces; what was only their beginning is passed on. */
export class DetachDetector {
  readonly #keys: Buffer;
  #matched = 0;

  constructor(keys: Buffer) {
    this.#keys = keys;
  }

  /** What is to be passed on, and whether the keys were seen. */
  push(chunk: Buffer): { passed: Buffer; detached: boolean } {
    const passed: number[] = [];
    for (const byte of chunk) {
      if (byte === this.#keys[this.#matched]) {
        this.#matched += 1;
        if (this.#matched === this.#keys.length) return { passed: Buffer.from(passed), detached: true };
        continue;
      }
      passed.push(...this.#keys.subarray(0, this.#matched));
      this.#matched = byte === this.#keys[0] ? 1 : 0;
      if (this.#matched === 0) passed.push(byte);
    }
    return { passed: Buffer.from(passed), detached: false };
  }
}
