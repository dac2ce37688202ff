import type { Variables } from '../../../buildfile/expansion/expand.ts';
import type { Linter, Place } from './linter.ts';
import { copyOfParts, sizeOfParts, type OutlineParts } from './outline.ts';
import type { VariablesBudget } from './variables-budget.ts';

/** Variables that are looked up, with a memory of the names that were there and of those that were not. */
export class WatchedVariables implements Variables {
  readonly matched = new Set<string>();
  readonly unmatched = new Set<string>();
  readonly #values: Variables;

  constructor(values: Variables) {
    this.#values = values;
  }

  readonly get = (name: string): string | undefined => {
    const value = this.#values.get(name);
    (value === undefined ? this.unmatched : this.matched).add(name);
    return value;
  };
}

/** The variables and settings of a stage so far, as far as the checks need them. */
export class StageScope {
  readonly env: Map<string, string>;
  readonly budget: VariablesBudget;
  /** The variables of the base are known: it is an earlier stage, or its image is here. */
  readonly isComplete: boolean;
  readonly outline: OutlineParts;
  readonly arguments: Set<string>;
  /** A working directory of this file. */
  hasWorkdir: boolean;
  hasShell: boolean;
  /** Triggers for a stage that is based on this one. */
  readonly triggers: string[] = [];
  /** The last places of instructions of which only the last one counts. */
  readonly #last = new Map<string, Place>();

  constructor(
    given: Pick<StageScope, 'env' | 'budget' | 'isComplete' | 'outline' | 'arguments' | 'hasWorkdir' | 'hasShell'>,
  ) {
    this.env = given.env;
    this.budget = given.budget;
    this.isComplete = given.isComplete;
    this.outline = given.outline;
    this.arguments = given.arguments;
    this.hasWorkdir = given.hasWorkdir;
    this.hasShell = given.hasShell;
  }

  /** For a stage that is based on this one. Throws `invalid` when all variables are too large. */
  derived(): StageScope {
    const { budget, isComplete, hasWorkdir, hasShell } = this;
    budget.copy(this.env.size + this.arguments.size + sizeOfParts(this.outline));
    const [env, names, outline] = [new Map(this.env), new Set(this.arguments), copyOfParts(this.outline)];
    return new StageScope({ env, budget, isComplete, outline, arguments: names, hasWorkdir, hasShell });
  }

  /** Throws `invalid` when all variables are too large. */
  setVariable(name: string, value: string): void {
    this.budget.add(name, value);
    this.env.set(name, value);
  }

  warnOfUndefined(linter: Linter, place: Place, { unmatched }: WatchedVariables): void {
    if (!this.isComplete) return;
    for (const name of unmatched) {
      if (linter.isFull) return;
      if (this.arguments.has(name)) continue;
      const suggestion = linter.suggestionFor(name, this.env.keys());
      const hint = suggestion === undefined ? '' : ` (did you mean $${suggestion}?)`;
      linter.warn('undefinedVar', place, `Usage of undefined variable '$${name}'${hint}`);
    }
  }

  warnOfEarlier(linter: Linter, word: string, place: Place): void {
    const kind = word.toLowerCase();
    const before = this.#last.get(kind);
    if (before !== undefined) {
      const detail = `Multiple ${word} instructions should not be used in the same stage because only the last one will be used`;
      linter.warn('multipleInstructionsDisallowed', before, detail);
    }
    this.#last.set(kind, place);
  }
}
