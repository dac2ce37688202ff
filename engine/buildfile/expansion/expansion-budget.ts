import { EngineError } from '../../lib/errors.ts';
import { MAX_EXPANDED_LENGTH, MAX_EXPANSIONS, MAX_PATTERN_STEPS } from '../limits.ts';

/** The work that the variables of one instruction may cost, all of its words together. Each method throws `invalid`. */
export class ExpansionBudget {
  #length = 0;
  #expansions = 0;
  #steps = 0;

  /** A variable or a substitution with this result. */
  addExpansion(result: string): void {
    this.#expansions += 1;
    if (this.#expansions > MAX_EXPANSIONS) {
      throw new EngineError('invalid', `the instruction has more than ${MAX_EXPANSIONS} variables`);
    }
    this.addLength(result.length);
  }

  addLength(length: number): void {
    this.#length += length;
    if (this.#length > MAX_EXPANDED_LENGTH) {
      throw new EngineError('invalid', `the result is longer than ${MAX_EXPANDED_LENGTH} characters`);
    }
  }

  /** Comparisons of a pattern with a value. */
  addSteps(count: number): void {
    this.#steps += count;
    if (this.#steps > MAX_PATTERN_STEPS) throw new EngineError('invalid', 'the value is too long for its pattern');
  }
}
