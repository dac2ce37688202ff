import { applySetting, commandLine, shellOf, type Settings } from '../buildfile/apply-setting.ts';
import { expandStep } from '../buildfile/expansion/expand-instruction.ts';
import { expandToWords, expandWord, variablesOf } from '../buildfile/expansion/expand.ts';
import { ExpansionBudget } from '../buildfile/expansion/expansion-budget.ts';
import { isSetting, type Instruction, type Setting, type Step } from '../buildfile/instruction.ts';
import { readTrigger } from '../buildfile/read-instruction.ts';
import type { Stage } from '../buildfile/stages.ts';
import { parsePlatform, type Platform } from '../images/configuration/platform.ts';
import type { Image } from '../images/store.ts';
import { Slices } from '../lib/concurrency/slices.ts';
import { EngineError } from '../lib/errors.ts';
import { measure } from '../lib/measures.ts';
import { EMPTY_CONFIG, runConfigOf, type RunConfig } from '../records/run-config.ts';
import type { BuildArgs } from './build-args.ts';
import type { Build } from './build.ts';
import { CacheSources } from './cache/cache-sources.ts';
import { StepCache } from './cache/cache.ts';
import { importedImage } from './cache/imported-steps.ts';
import { baseKey, stepKey } from './cache/step-key.ts';
import type { StageOutput } from './output.ts';
import { shownBase, shownCode } from './shown-code.ts';
import { inherit, maskedSecrets, settingLine, takeArg } from './stage-differences.ts';
import { copyStep } from './steps/copy-step.ts';
import { runStep } from './steps/run-step.ts';
import { settingStep, workingDirectoryStep } from './steps/setting-step.ts';

const DEFAULT_PATH = 'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** A step under its key, and the image that it made. */
export type KeyedStep = Readonly<{ key: string; parent: string; image: Image }>;

/** The state of a stage: changed by its steps, one after the other. */
export class StageState {
  readonly build: Build;
  readonly index: number;
  readonly output: StageOutput;
  readonly args: BuildArgs;
  readonly cache: StepCache;
  settings: Settings = { config: EMPTY_CONFIG, maintainer: '', hasCommand: false };
  /** Arguments that BuildKit puts in front of variables of the image, until an ENV sets these again. */
  readonly overrides = new Map<string, string>();
  /** A CMD of the file or of the base marks the image. */
  argsEscaped = false;
  /** Undefined for `FROM scratch`. */
  image: Image | undefined;
  /**
   * The steps of this file so far as BuildKit's histories tell them, one for each line of the image's own history; undefined
   * for one that they leave out.
   */
  readonly historyLines: (string | undefined)[] = [];
  /** The platform that was asked for where no base image has one. */
  platform: Platform | undefined;
  /** Names the steps so far, on each machine alike. */
  key = '';
  /** The steps so far with the images that they made, for caches of other machines. */
  readonly steps: KeyedStep[] = [];
  /** That of the step before. */
  #parentKey = '';
  /** The files and volumes that `checkVolumes` has found to agree. */
  checkedVolumes = '';

  constructor(build: Build, index: number, output: StageOutput) {
    this.build = build;
    this.index = index;
    this.output = output;
    this.args = build.args.forStage();
    const { usesCache, uncachedStages, cacheFrom } = build.options;
    const isOff = !usesCache || uncachedStages.has(build.plan.stages[index]!.from.name);
    const sources = cacheFrom.length === 0 ? undefined : new CacheSources(build.engine, cacheFrom);
    this.cache = new StepCache(build.engine.images, { isOff, sources });
  }

  get config(): RunConfig {
    return this.settings.config;
  }

  get isClassic(): boolean {
    return this.build.plan.dialect === 'classic';
  }

  /** The variables of its steps, as `NAME=value`; later ones count. */
  get variables(): string[] {
    const env = this.config.Env ?? [];
    const overrides = Array.from(this.overrides, ([name, value]) => `${name}=${value}`);
    return [...this.args.visible(env), ...env, ...overrides];
  }

  /** The settings by which the cache identifies a step without a process. */
  withComment(...words: string[]): RunConfig {
    return { ...this.config, Cmd: [...shellOf(this.config), ...words] };
  }

  /** Records the image that a step has made, or found in the cache. */
  goOn(image: Image): void {
    this.image = image;
    if (!this.isClassic) this.steps.push({ key: this.key, parent: this.#parentKey, image });
    this.settings = { ...this.settings, config: { ...this.config, Image: image.id } };
  }

  /** Begins a step: whether the cache has it. */
  async takeFromCache(config: RunConfig): Promise<boolean> {
    this.#parentKey = this.key;
    if (!this.isClassic) this.key = stepKey(this.key, config);
    const imported = async (): Promise<Image | undefined> => await importedImage(this, this.key, config);
    const found = await this.cache.find(this.image, config, imported);
    if (found === undefined) return false;
    this.output.useCache();
    this.goOn(found);
    return true;
  }
}

/** Builds a stage from its FROM to its last step. `firstStep` is the number of its FROM. */
export async function buildStage(state: StageState, stage: Stage, firstStep: number): Promise<void> {
  const { build, output } = state;
  await shownStep(state, firstStep, stage.from, async () => await begin(state, stage));
  const slices = new Slices(build.signal);
  for (const [index, step] of stage.steps.entries()) {
    build.signal.throwIfAborted();
    if (slices.isOver) await slices.pause();
    await shownStep(state, firstStep + 1 + index, step, async () => await takeStep(state, step));
  }
  if (build.wantsAux && state.image !== undefined) output.report({ aux: { ID: state.image.id } });
}

async function shownStep(
  state: StageState,
  number: number,
  instruction: Instruction,
  take: () => Promise<void>,
  triggers = 0,
): Promise<void> {
  const { build, output } = state;
  output.beginStep({ number, count: build.steps, instruction, code: codeOf(state, instruction), triggers });
  try {
    await take();
  } catch (error) {
    output.failStep(error);
    throw error;
  }
  output.endStep(state.image);
}

/** BuildKit shows expanded variables, and no FROM of an earlier stage. */
function codeOf(state: StageState, instruction: Instruction): string {
  const { build } = state;
  const { escape, dialect } = build.plan;
  if (dialect === 'classic') return instruction.code;
  if (instruction.kind === 'from') {
    const name = build.baseName(instruction);
    return name === 'scratch' || build.isEarlierStage(name, state) ? '' : shownBase(name);
  }
  const variables = variablesOf([...state.variables, ...maskedSecrets(instruction)]);
  return shownCode(instruction, instruction.code, { variables, escape });
}

async function begin(state: StageState, { from }: Stage): Promise<void> {
  const { build } = state;
  const globals = variablesOf(build.args.globals());
  const expand = (word: string): string => expandWord(word, globals, build.plan.escape);
  const name = expand(from.base);
  if (name === '') throw new EngineError('invalid', `base name (${from.base}) should not be blank`);
  const platform = parsePlatform(expand(from.platform)) ?? build.options.platform;
  const earlier = build.earlierStage(name, state);
  if (earlier !== undefined) inherit(state, await earlier);
  state.platform = name === 'scratch' ? platform : (await earlier)?.platform;
  const image = name === 'scratch' ? undefined : await baseOf(state, name, platform);
  const inherited = image === undefined ? EMPTY_CONFIG : runConfigOf(image.wireConfig);
  const env = inherited.Env ?? [];
  const config = {
    ...inherited,
    Env: env.some((entry) => entry.startsWith('PATH=')) ? env : [...env, DEFAULT_PATH],
    OpenStdin: false,
    StdinOnce: false,
    Image: image?.id ?? '',
    ...(image === undefined && !state.isClassic && { WorkingDir: '/' }),
  };
  state.argsEscaped ||= image?.wireConfig['ArgsEscaped'] === true;
  state.image = image;
  if (!state.isClassic) state.key = (await earlier)?.key ?? baseKey(image);
  state.settings = { config, maintainer: '', hasCommand: false };
  await takeTriggers(state, config.OnBuild ?? []);
}

/** The ONBUILD triggers of the base image. */
async function takeTriggers(state: StageState, triggers: readonly string[]): Promise<void> {
  if (triggers.length === 0) return;
  state.settings = { ...state.settings, config: { ...state.config, OnBuild: null } };
  state.output.note(`# Executing ${triggers.length} build trigger${triggers.length > 1 ? 's' : ''}\n`);
  const slices = new Slices(state.build.signal);
  for (const trigger of triggers) {
    if (slices.isOver) await slices.pause();
    const step = readTrigger(trigger, state.build.plan.dialect);
    if (state.build.plan.dialect === 'classic') await takeStep(state, step);
    else await shownStep(state, 0, step, async () => await takeStep(state, step), triggers.length);
  }
}

async function baseOf(state: StageState, name: string, platform: Platform | undefined): Promise<Image | undefined> {
  try {
    return await state.build.imageOf(name, state, platform);
  } catch (error) {
    const isOwn = state.isClassic || state.build.isEarlierStage(name, state);
    if (isOwn || state.build.signal.aborted || !(error instanceof EngineError)) throw error;
    const full = shownBase(name).replace(/^FROM /, '');
    const message = `${name}: failed to resolve source metadata for ${full}: ${error.message}`;
    throw new EngineError(error.kind, message, { cause: error });
  }
}

async function takeStep(state: StageState, step: Step): Promise<void> {
  const measured = measure('buildStep', step.kind.toUpperCase());
  await take(state, step);
  measured();
}

async function take(state: StageState, step: Step): Promise<void> {
  const { escape } = state.build.plan;
  const variables = variablesOf(state.variables);
  const budget = new ExpansionBudget();
  const expanded = expandStep(step, (word) => expandWord(word, variables, escape, budget));
  if (isSetting(expanded)) {
    await takeSetting(state, expanded, (word) => expandToWords(word, variables, escape, budget));
    return;
  }
  switch (expanded.kind) {
    case 'arg': {
      for (const { name, value } of expanded.args) takeArg(state, name, value);
      const shown = expanded.args.map(({ name, value }) => (value === undefined ? name : `${name}=${value}`));
      await settingStep(state, `ARG ${shown.join(' ')}`);
      const valued = expanded.args.map(({ name }) =>
        [name, state.args.valueOf(name)].filter((part) => part !== undefined),
      );
      state.historyLines.push(`ARG ${valued.map((parts) => parts.join('=')).join(' ')}`);
      return;
    }
    case 'run':
      await runStep(state, expanded, commandLine(state.config, expanded.command));
      return;
    case 'copy':
    case 'add':
      await copyStep(state, expanded, (text) => expandWord(text, variables, escape));
      return;
  }
}

async function takeSetting(state: StageState, step: Setting, toWords: (word: string) => string[]): Promise<void> {
  const { settings, comment, note } = applySetting(state.settings, step, toWords);
  if (note !== undefined) state.output.note(`${note}\n`);
  if (step.kind === 'env') for (const { name } of step.pairs) state.overrides.delete(name);
  if (step.kind === 'cmd') state.argsEscaped = true;
  const inherits = step.kind === 'healthcheck' && state.isClassic;
  state.settings = inherits ? withEarlierCheck(settings, state.config) : settings;
  if (step.kind === 'workdir') await workingDirectoryStep(state, comment);
  else await settingStep(state, comment);
  state.historyLines.push(settingLine(step, comment));
}

/** As in docker, a new check inherits missing fields from the one before. */
function withEarlierCheck(settings: Settings, { Healthcheck: before }: RunConfig): Settings {
  const { config } = settings;
  return { ...settings, config: { ...config, Healthcheck: { ...before, ...config.Healthcheck } } };
}
