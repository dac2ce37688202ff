import { EngineError } from '../../../lib/errors.ts';

const MAX_BYTES = 16 * 1024 * 1024;
/** Memory of a variable besides its name and value. */
const ENTRY_BYTES = 100;

/** Memory of the variables of all stages: a stage begins with a copy of those of its base. */
export class VariablesBudget {
  #left = MAX_BYTES;

  /** Counts a variable. Throws `invalid` when all together are too large. */
  add(name: string, value = ''): void {
    this.#take(name.length + value.length + ENTRY_BYTES);
  }

  /** Counts a copy of so many variables; their texts are shared. Throws `invalid` when all together are too large. */
  copy(count: number): void {
    this.#take(count * ENTRY_BYTES);
  }

  #take(bytes: number): void {
    this.#left -= bytes;
    if (this.#left < 0)
      throw new EngineError('invalid', `the variables of all stages take more than ${MAX_BYTES} bytes`);
  }
}
