import { expandWord } from '../../../buildfile/expansion/expand.ts';
import type { From, Step } from '../../../buildfile/instruction.ts';
import { atPlace, LocatedError } from '../../../buildfile/located-error.ts';
import { parseFile, type Line, type ParsedFile } from '../../../buildfile/parse.ts';
import { readTrigger } from '../../../buildfile/read-instruction.ts';
import type { Plan, Stage } from '../../../buildfile/stages.ts';
import { parsePlatform } from '../../../images/configuration/platform.ts';
import { parseReference } from '../../../images/names/reference.ts';
import { EngineError } from '../../../lib/errors.ts';
import { withSuggestion } from '../../../lib/notations/suggestion.ts';
import type { RunConfig } from '../../../records/run-config.ts';
import { checkLines } from './check-lines.ts';
import { checkStep, descriptionOf, placeOf, type StepContext } from './check-step.ts';
import type { Linter } from './linter.ts';
import { noParts, type OutlineParts } from './outline.ts';
import { StageScope, WatchedVariables } from './stage-scope.ts';
import { stagesNeeded, stageSources } from './stage-sources.ts';
import { VariablesBudget } from './variables-budget.ts';

const DEFAULT_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

export type Evaluated = Readonly<{
  file: ParsedFile;
  plan: Plan;
  linter: Linter;
  given: Readonly<Record<string, string | null>>;
  /** Arguments of the platform. */
  automatic: Readonly<Record<string, string>>;
  target: string;
  /** All stages are checked, not only those that the target needs. */
  allStages: boolean;
  /** The settings of an image that is here. */
  configOf: (name: string) => RunConfig | undefined;
  isIgnored: StepContext['isIgnored'];
}>;

/** The parameters of the target, with those of the stages that it needs. */
export type Target = Readonly<{ name: string; description: string; parts: readonly OutlineParts[] }>;

/**
 * Goes through a file without files and processes: warnings of the rules, and mistakes that can be known before the first
 * step. Throws `invalid`, with the place where there is one.
 */
export function* evaluateInSteps(input: Evaluated): Generator<void, Target> {
  return yield* new Evaluation(input).run();
}

class Evaluation {
  readonly #input: Evaluated;
  readonly #given: ReadonlyMap<string, string>;
  readonly #lines: ReadonlyMap<number, Line>;
  readonly #globals: Map<string, string>;
  readonly #globalParts = noParts();
  readonly #budget = new VariablesBudget();
  readonly #scopes = new Map<number, StageScope>();

  constructor(input: Evaluated) {
    this.#input = input;
    this.#given = new Map(
      Object.entries(input.given).flatMap(([name, value]) => (value === null ? [] : [[name, value]])),
    );
    this.#lines = new Map(input.file.lines.map((line) => [line.number, line]));
    this.#globals = new Map(
      Object.entries(input.automatic).map(([name, value]) => [name, this.#given.get(name) ?? value]),
    );
  }

  *run(): Generator<void, Target> {
    const { plan, file, linter, target } = this.#input;
    checkLines(file, linter);
    if (plan.stages.length === 0) throw new EngineError('invalid', 'dockerfile contains no stages to build');
    yield* this.#checkDefaultBases();
    yield* this.#takeGlobalArgs();
    const bases = plan.stages.map(({ from }) => this.#baseOf(from));
    const last = this.#indexOf(target);
    const sources = plan.stages.map((stage, index) => stageSources(plan.stages, stage, bases[index]!, index));
    refuseCircles(plan.stages, sources);
    const needed = stagesNeeded(last, sources);
    for (const [index, stage] of plan.stages.entries()) {
      if (!this.#input.allStages && !needed.has(index)) continue;
      yield* this.#checkStage(stage, index, { base: bases[index]!, sources: sources[index]! });
    }
    linter.refuseWarnings();
    const { from } = plan.stages[last]!;
    const parts = [last, ...[...needed].filter((each) => each !== last)].map((each) => this.#scopes.get(each)!.outline);
    return { name: from.name, description: descriptionOf(from.name, this.#lineOf(from).comments), parts };
  }

  /** With the defaults of the arguments alone, each base has a name that could be one. */
  *#checkDefaultBases(): Generator<void> {
    const { plan, linter } = this.#input;
    const [values, budget] = [new Map(this.#globals), new VariablesBudget()];
    try {
      for (const { args } of plan.globalArgs) {
        yield;
        for (const { name, value } of args) {
          if (value === undefined) continue;
          const taken = expandWord(value, values, plan.escape);
          budget.add(name, taken);
          values.set(name, taken);
        }
      }
      for (const { from } of plan.stages) {
        if (isReference(expandWord(from.base, values, plan.escape))) continue;
        const detail = `Default value for ARG ${from.base} results in empty or invalid base image name`;
        linter.warn('invalidDefaultArgInFrom', placeOf(from), detail);
      }
    } catch (error) {
      if (!(error instanceof EngineError)) throw error; // with the arguments of the client it is said again
    }
  }

  *#takeGlobalArgs(): Generator<void> {
    const { plan } = this.#input;
    for (const arg of plan.globalArgs) {
      yield;
      const line = this.#lineOf(arg);
      for (const { name, value } of arg.args) {
        const watched = new WatchedVariables(this.#globals);
        const taken =
          this.#given.get(name) ??
          (value === undefined ? undefined : atPlace(line, () => expandWord(value, watched, plan.escape)));
        this.#budget.add(name, taken);
        if (taken !== undefined) this.#globals.set(name, taken);
        const description = descriptionOf(name, line.comments);
        const info = { name, value: taken ?? '', description, place: placeOf(line), uses: watched.matched };
        this.#globalParts.known.set(name, info);
      }
    }
  }

  #baseOf(from: From): Readonly<{ name: string; used: ReadonlySet<string> }> {
    const { linter, plan } = this.#input;
    const place = placeOf(from);
    const watched = new WatchedVariables(this.#globals);
    const name = atPlace(place, () => expandWord(from.base, watched, plan.escape));
    this.#warnOfUndeclared(watched, from);
    if (name === '') throw new LocatedError(place, `base name (${from.base}) should not be blank`);
    if (from.platform === '') return { name, used: watched.matched };
    const platform = new WatchedVariables(this.#globals);
    const written = atPlace(place, () => expandWord(from.platform, platform, plan.escape));
    this.#warnOfUndeclared(platform, from);
    const isTarget =
      platform.matched.size === 1 && platform.unmatched.size === 0 && platform.matched.has('TARGETPLATFORM');
    if (isTarget && written === this.#globals.get('TARGETPLATFORM')) {
      const detail = `Setting platform to predefined ${from.platform} in FROM is redundant as this is the default behavior`;
      linter.warn('redundantTargetPlatform', place, detail);
    }
    this.#checkPlatform(from, written, platform);
    return { name, used: new Set([...watched.matched, ...platform.matched]) };
  }

  #checkPlatform(from: From, written: string, watched: WatchedVariables): void {
    const place = placeOf(from);
    const suggested = (message: string): string => {
      const [name] = watched.unmatched;
      return name === undefined ? message : withSuggestion(message, name, [...this.#globals.keys()]);
    };
    if (written === '') {
      throw new LocatedError(place, suggested(`empty platform value from expression ${from.platform}`));
    }
    const platform = atPlace(place, () => {
      try {
        return parsePlatform(written);
      } catch (error) {
        if (!(error instanceof EngineError)) throw error;
        throw new EngineError('invalid', `failed to parse platform ${from.platform}: ${suggested(error.message)}`);
      }
    });
    if (watched.matched.size > 0 || watched.unmatched.size > 0 || platform === undefined) return;
    if (from.name.includes(platform.os) || from.name.includes(platform.architecture)) return;
    const detail = `FROM --platform flag should not use constant value "${written}"`;
    this.#input.linter.warn('fromPlatformFlagConstDisallowed', place, detail);
  }

  #warnOfUndeclared({ unmatched }: WatchedVariables, from: From): void {
    const known = this.#globalParts.known;
    for (const name of unmatched) {
      if (known.has(name) || this.#globals.has(name)) continue;
      const suggestion = this.#input.linter.suggestionFor(name, new Set([...known.keys(), ...this.#globals.keys()]));
      const hint = suggestion === undefined ? '' : ` (did you mean ${suggestion}?)`;
      const detail = `FROM argument '${name}' is not declared${hint}`;
      this.#input.linter.warn('undefinedArgInFrom', placeOf(from), detail);
    }
  }

  #indexOf(target: string): number {
    const { stages } = this.#input.plan;
    if (target === '') return stages.length - 1;
    const named = stages.findLastIndex(({ from }) => from.name === target.toLowerCase());
    if (named >= 0) return named;
    if (/^\d+$/.test(target) && Number(target) < stages.length) return Number(target);
    const names = stages.map(({ from }, index) => from.name || `stage-${index}`);
    throw new EngineError('invalid', withSuggestion(`target stage "${target}" could not be found`, target, names));
  }

  *#checkStage(
    { from, steps }: Stage,
    index: number,
    { base, sources }: Readonly<{ base: { name: string; used: ReadonlySet<string> }; sources: StageSources }>,
  ): Generator<void> {
    const earlier = sources.base === undefined ? undefined : this.#scopes.get(sources.base);
    if (sources.base === undefined && base.name !== 'scratch' && !isReference(base.name)) {
      throw new LocatedError(from, `failed to parse stage name "${base.name}": invalid reference format`);
    }
    const scope = earlier?.derived() ?? this.#scopeOf(base.name);
    for (const name of base.used) scope.outline.used.add(name);
    this.#scopes.set(index, scope);
    const fromLine = this.#lineOf(from);
    for (const trigger of earlier?.triggers ?? []) {
      yield;
      atPlace(fromLine, () => {
        const [line] = parseFile(trigger, 'buildkit').lines;
        this.#checkStep(readTrigger(trigger, 'buildkit'), { ...line!, ...placeOf(fromLine) }, scope);
      });
    }
    for (const step of steps) {
      yield;
      const later = sources.later.get(step);
      const name = from.name || `stage-${index}`;
      atPlace(step, () => {
        if (later !== undefined) throw new EngineError('invalid', later.replace('%', name));
        this.#checkStep(step, this.#lineOf(step), scope);
      });
    }
  }

  #checkStep(step: Step, line: Line, scope: StageScope): void {
    const { linter, plan, isIgnored } = this.#input;
    checkStep(step, line, scope, {
      linter,
      escape: plan.escape,
      given: this.#given,
      globals: this.#globals,
      isIgnored,
    });
  }

  #scopeOf(base: string): StageScope {
    const config = base === 'scratch' ? undefined : this.#input.configOf(base);
    const entries = (config?.Env ?? []).map((entry) => {
      const equals = entry.indexOf('=');
      return [entry.slice(0, equals), entry.slice(equals + 1)] as const;
    });
    this.#budget.copy(entries.length + this.#globalParts.known.size);
    return new StageScope({
      env: new Map([['PATH', DEFAULT_PATH], ...entries]),
      budget: this.#budget,
      isComplete: base === 'scratch' || config !== undefined,
      outline: noParts(this.#globalParts.known),
      arguments: new Set(),
      hasWorkdir: false,
      hasShell: (config?.Shell ?? []).length > 0,
    });
  }

  #lineOf({ number }: { number: number }): Line {
    return this.#lines.get(number)!;
  }
}

type StageSources = ReturnType<typeof stageSources>;

/** Each stage is visited once; one that leads to itself is a mistake at the step that asks for it. */
function refuseCircles(stages: readonly Stage[], sources: readonly StageSources[]): void {
  const done = new Set<number>();
  const path = new Set<number>();
  const visit = (index: number): void => {
    if (done.has(index)) return;
    path.add(index);
    for (const { stage, step } of sources[index]!.all) {
      if (path.has(stage)) {
        const { name } = stages[index]!.from;
        throw new LocatedError(step, `circular dependency detected on stage: ${name || `stage-${index}`}`);
      }
      visit(stage);
    }
    path.delete(index);
    done.add(index);
  };
  for (const index of stages.keys()) visit(index);
}

function isReference(name: string): boolean {
  try {
    parseReference(name);
    return true;
  } catch (error) {
    if (error instanceof EngineError) return false;
    throw error;
  }
}
