import { expandWord, variablesOf, type Variables } from '../buildfile/expansion/expand.ts';
import { ExpansionBudget } from '../buildfile/expansion/expansion-budget.ts';
import type { Copy, From } from '../buildfile/instruction.ts';
import { MAX_STORED_LENGTH, refuseAbove } from '../buildfile/limits.ts';
import type { Plan, Stage } from '../buildfile/stages.ts';
import type { Engine } from '../engine.ts';
import type { Platform } from '../images/configuration/platform.ts';
import { familiarReference } from '../images/names/reference.ts';
import { giveName } from '../images/names/tag.ts';
import type { Image } from '../images/store.ts';
import { Slices } from '../lib/concurrency/slices.ts';
import { EngineError } from '../lib/errors.ts';
import { shortId } from '../lib/ids.ts';
import { baseImage } from './base-images.ts';
import { BuildArgs, unusedArgs } from './build-args.ts';
import type { BuildContext } from './context/context.ts';
import type { BuildOptions } from './options.ts';
import type { BuildOutput } from './output.ts';
import { stagesNamed } from './stage-names.ts';
import { buildStage, StageState, type KeyedStep } from './stage.ts';
import { downloaded } from './steps/download.ts';

type Request = Readonly<{
  options: BuildOptions;
  plan: Plan;
  /** Undefined: there is none. */
  context: () => Promise<BuildContext | undefined>;
  /** For temporary files of the build. */
  folder: string;
  output: (stages: readonly Stage[]) => BuildOutput;
  signal: AbortSignal;
  wantsAux: boolean;
  named?: NamedImages;
}>;

/** Images that stand for names in FROM and `--from`, also instead of stages of these names. */
export type NamedImages = Readonly<{
  has: (name: string) => boolean;
  image: (name: string, platform: Platform | undefined) => Promise<Image>;
}>;

type Result = { image: Image; allSteps: readonly KeyedStep[] } & Pick<
  StageState,
  'historyLines' | 'argsEscaped' | 'platform' | 'steps'
>;

const NONE: NamedImages = {
  has: () => false,
  image: async () => await Promise.reject(new Error('there are no named images')),
};

/** One build: its stages, each of which is built when it is needed, and at most once. */
export class Build {
  readonly engine: Engine;
  readonly options: BuildOptions;
  readonly plan: Plan;
  readonly context: () => Promise<BuildContext | undefined>;
  readonly folder: string;
  readonly wantsAux: boolean;
  readonly args: BuildArgs;
  /** Aborted when the client has left, or when a stage has failed. */
  readonly signal: AbortSignal;
  /** The number of steps of the whole file. */
  readonly steps: number;
  readonly #failed = new AbortController();
  readonly #output: BuildOutput;
  readonly #named: NamedImages;
  readonly #stages: readonly Stage[];
  readonly #firstSteps: readonly number[];
  #stored = 0;
  readonly #needed = new Map<number, readonly number[]>();
  /** The variables of FROM lines. */
  #globals: Variables = new Map();
  readonly #running = new Map<number, Promise<StageState>>();

  constructor(engine: Engine, request: Request) {
    this.engine = engine;
    this.options = request.options;
    this.plan = request.plan;
    this.context = request.context;
    this.folder = request.folder;
    this.wantsAux = request.wantsAux;
    this.args = new BuildArgs(request.options);
    this.signal = AbortSignal.any([request.signal, this.#failed.signal]);
    this.#named = request.named ?? NONE;
    this.#stages = stagesNamed(request.plan, request.options);
    this.#output = request.output(this.#stages);
    this.#firstSteps = firstStepsOf(this.#stages, request.plan.globalArgs.length + 1);
    this.steps = this.#firstSteps.at(-1)! + this.#stages.at(-1)!.steps.length;
  }

  /** Builds the last stage with those that it needs, and gives the image its names. */
  async run(): Promise<Result> {
    const { warnings } = this.plan;
    if (warnings.length > 0) this.#output.whole.errorText(`${warnings.join('\n')}\n`);
    this.#takeGlobalArgs();
    this.#globals = variablesOf(this.args.globals());
    const last = this.#stages.length - 1;
    this.#skipUnneeded(last);
    try {
      const { image, historyLines, argsEscaped, platform, steps } = await this.#stage(last);
      await this.#output.settled();
      if (image === undefined) throw new EngineError('failed', 'No image was generated. Is your Dockerfile empty?');
      this.#tellUnusedArgs();
      this.#output.whole.note(`Successfully built ${shortId(image.id.replace('sha256:', ''))}\n`);
      const slices = new Slices();
      for (const name of this.options.names) {
        if (slices.isOver) await slices.pause();
        giveName(this.engine, image.id, name);
        this.#output.whole.note(`Successfully tagged ${familiarReference(name)}\n`);
      }
      return { image, historyLines, argsEscaped, platform, steps, allSteps: await this.#allSteps() };
    } catch (error) {
      this.#failed.abort(error);
      await Promise.allSettled(this.#running.values()); // no work goes on after the answer
      await Promise.allSettled([this.#output.settled()]);
      throw error;
    }
  }

  /** Those of all stages that it has built. */
  async #allSteps(): Promise<KeyedStep[]> {
    const stages = await Promise.allSettled(this.#running.values());
    return stages.flatMap((each) => (each.status === 'fulfilled' ? each.value.steps : []));
  }

  /** The stage of this name in front of another one. */
  earlierStage(name: string, { index }: StageState): Promise<StageState> | undefined {
    const found = this.#stages.findLastIndex((stage, at) => at < index && this.#isCalled(stage, name));
    return found < 0 ? undefined : this.#stage(found);
  }

  isEarlierStage(name: string, { index }: StageState): boolean {
    return this.#stages.some((stage, at) => at < index && this.#isCalled(stage, name));
  }

  #isCalled({ from }: Stage, name: string): boolean {
    return from.name !== '' && from.name === name.toLowerCase() && !this.#named.has(name);
  }

  /** The name in a FROM, with its variables. Throws `invalid`. */
  baseName({ base }: From): string {
    return expandWord(base, this.#globals, this.plan.escape);
  }

  /** The image of a FROM: that of an earlier stage, or one of the store or a registry. */
  async imageOf(name: string, state: StageState, platform?: Platform): Promise<Image | undefined> {
    const earlier = this.earlierStage(name, state);
    if (earlier !== undefined) return (await earlier).image;
    if (this.#named.has(name)) return await this.#named.image(name, platform);
    const { credentials, pulls } = this.options;
    const { output } = state;
    return await baseImage(this.engine, name, { pulls, credentials, output, signal: this.signal, platform });
  }

  /** That of a `--from`, where a stage has a number as well. */
  async imageFrom(from: string, state: StageState): Promise<Image> {
    const isNumber = /^\d+$/.test(from) && !this.#stages.some(({ from: { name } }) => name === from);
    const refuse = (why: string): never => {
      throw new EngineError('invalid', `invalid from flag value ${from}: ${why}`);
    };
    if (isNumber && Number(from) === state.index) return refuse('refers to current build stage');
    if (isNumber && Number(from) > state.index) return refuse('index out of bounds');
    const image = isNumber ? (await this.#stage(Number(from))).image : await this.#imageNamed(from, state);
    return image ?? refuse('the stage is empty');
  }

  /** Counts the configuration of an image of this build, which repeats those of the steps before. Throws `invalid`. */
  addStored(length: number): void {
    this.#stored += length;
    refuseAbove(MAX_STORED_LENGTH, this.#stored, 'the list of the settings and histories of all steps', 'characters');
  }

  /** ADD of an address. */
  async download(state: StageState, url: string, step: Copy): ReturnType<typeof downloaded> {
    return await downloaded(this, state.output, url, step);
  }

  async #imageNamed(from: string, state: StageState): Promise<Image | undefined> {
    // The failure of a stage is its own.
    if (this.plan.dialect === 'buildkit' && this.isEarlierStage(from, state)) return await this.imageOf(from, state);
    try {
      return await this.imageOf(from, state);
    } catch (error) {
      if (!(error instanceof EngineError)) throw error;
      throw new EngineError(error.kind, `invalid from flag value ${from}: ${error.message}`, { cause: error });
    }
  }

  /** Begins a stage, and those that it will need, unless they have begun. */
  #stage(index: number): Promise<StageState> {
    const known = this.#running.get(index);
    if (known !== undefined) return known;
    const { promise, resolve, reject } = Promise.withResolvers<StageState>();
    promise.catch((error: unknown) => this.#failed.abort(error));
    this.#running.set(index, promise);
    for (const each of this.#neededBy(index)) this.#stage(each).catch(() => undefined);
    this.#build(index).then(resolve, reject);
    return promise;
  }

  async #build(index: number): Promise<StageState> {
    const state = new StageState(this, index, this.#output.stage(index));
    try {
      await buildStage(state, this.#stages[index]!, this.#firstSteps[index]!);
      return state;
    } finally {
      this.#output.endStage(index);
    }
  }

  /** The earlier stages that its lines name. */
  #neededBy(index: number): readonly number[] {
    return this.#needed.getOrInsertComputed(index, () => this.#findNeeded(index));
  }

  #findNeeded(index: number): number[] {
    const { from, steps } = this.#stages[index]!;
    const names = new Set([expandWord(from.base, this.#globals, this.plan.escape).toLowerCase()]);
    for (const step of steps) {
      if (step.kind === 'copy') names.add(step.from.toLowerCase());
      if (step.kind === 'run') for (const mount of step.mounts) names.add(mount.from.toLowerCase());
    }
    return this.#stages.slice(0, index).flatMap(({ from: { name } }, at) => {
      const isNamed = (name !== '' && names.has(name) && !this.#named.has(name)) || names.has(String(at));
      return isNamed ? [at] : [];
    });
  }

  /** Outputs wait for those of earlier stages, but not for stages that are never built. */
  #skipUnneeded(last: number): void {
    const needed = new Set([last]);
    for (const index of needed) for (const each of this.#neededBy(index)) needed.add(each);
    for (const index of this.#stages.keys()) if (!needed.has(index)) this.#output.endStage(index);
  }

  #takeGlobalArgs(): void {
    for (const [index, instruction] of this.plan.globalArgs.entries()) {
      const { code, args } = instruction;
      this.#output.whole.beginStep({ number: index + 1, count: this.steps, instruction, code, triggers: 0 });
      const budget = new ExpansionBudget();
      for (const { name, value } of args) {
        const expand = (word: string): string => expandWord(word, this.args.values, this.plan.escape, budget);
        this.args.add(expand(name), value === undefined ? undefined : expand(value));
      }
    }
  }

  #tellUnusedArgs(): void {
    const steps = [...this.plan.globalArgs, ...this.#stages.flatMap((stage) => stage.steps)];
    const asked = new Set(steps.flatMap((step) => (step.kind === 'arg' ? step.args.map(({ name }) => name) : [])));
    const unused = unusedArgs(this.options.args, asked);
    if (unused.length === 0) return;
    this.#output.whole.warn(`[Warning] One or more build-args [${unused.join(' ')}] were not consumed\n`);
  }
}

function firstStepsOf(stages: readonly Stage[], first: number): number[] {
  let next = first;
  return stages.map(({ steps }) => {
    const own = next;
    next += steps.length + 1;
    return own;
  });
}
