import { Duplex } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';
import { callbackify } from 'node:util';

import { variablesOf } from '../../buildfile/expansion/expand.ts';
import type { Run } from '../../buildfile/instruction.ts';
import { createContainer } from '../../containers/lifecycle/create.ts';
import { killContainer } from '../../containers/lifecycle/kill.ts';
import { removeContainer } from '../../containers/lifecycle/remove.ts';
import { startContainer } from '../../containers/runs/start.ts';
import { exitCodeOf } from '../../containers/state.ts';
import { attachContainer, prepareAttach } from '../../containers/streams/attach.ts';
import { FrameDecoder, STDOUT } from '../../http/streams/frames.ts';
import { childImage } from '../../images/configuration/child-image.ts';
import { commitLayer } from '../../layers/commit.ts';
import { EngineError } from '../../lib/errors.ts';
import { shortId } from '../../lib/ids.ts';
import { EMPTY_CONFIG } from '../../records/run-config.ts';
import type { StageOutput } from '../output.ts';
import type { StageState } from '../stage.ts';
import { explainForeign } from './foreign-platform.ts';
import { runMounts } from './run-mounts.ts';
import { runScript } from './run-script.ts';
import { StepFailed } from './step-failed.ts';
import { storeStep } from './store-step.ts';

/** RUN: a container of the image so far, whose changes become a layer. */
export async function runStep(state: StageState, step: Run, commandLine: readonly string[]): Promise<void> {
  const { build, config } = state;
  await using resources = new AsyncDisposableStack();
  const { words, binds } = await runScript(build, step, commandLine);
  const mounts = await runMounts(state, step.mounts, resources);
  const visible = state.args.visible(config.Env ?? []);
  const hasMore = visible.length > 0 || mounts.sums.length > 0 || state.overrides.size > 0;
  const overrides = Array.from(state.overrides, ([name, value]) => `${name}=${value}`);
  const recorded = [...state.args.recorded(visible), ...overrides, ...mounts.sums];
  const variables = variablesOf(state.variables);
  const valueOf = (name: string): string =>
    (state.isClassic ? undefined : variables.get(name)) ?? state.args.valueOf(name) ?? '';
  state.historyLines.push(
    runLine(
      state.args.declared.map((name) => `${name}=${valueOf(name)}`),
      words,
    ),
  );
  const known = { ...config, Cmd: hasMore ? [`|${recorded.length}`, ...recorded, ...words] : words, Entrypoint: null };
  if (await state.takeFromCache(known)) return;
  const specs = await mounts.prepare();
  const body = {
    ...config,
    Image: imageOf(state, resources),
    Cmd: words,
    Env: [...withOverrides(state), ...visible, ...otherCases(state, visible)],
    Entrypoint: words.length > 0 ? [''] : (config.Entrypoint ?? undefined), // `RUN []` is the command of the image so far, as in dockerd
    Healthcheck: { Test: ['NONE'] },
    HostConfig: {
      ...build.options.hostConfig,
      ...(step.network !== 'default' && { NetworkMode: step.network }),
      ...(specs.length > 0 && { Mounts: specs }),
      ...(binds.length > 0 && { Binds: binds }),
    },
  } as Parameters<typeof createContainer>[1];
  const id = await explainForeign(state, async () => await runContainer(state, body, words, mounts.env));
  try {
    using leases = new DisposableStack();
    const layer = await commitLayer(build.engine, id, leases, [...mounts.places, '/dev/pipes'], build.signal);
    storeStep(state, { layer, containerConfig: known, containerId: id });
  } catch (error) {
    if (build.options.removesAlways) await tellRemoval(state, id);
    else keep(state, id);
    throw error;
  }
  if (build.options.removes) await tellRemoval(state, id);
  else keep(state, id);
}

function withOverrides({ config, overrides }: StageState): string[] {
  return (config.Env ?? []).map((entry) => {
    const name = entry.split('=', 1)[0]!;
    return overrides.has(name) ? `${name}=${overrides.get(name)}` : entry;
  });
}

/** BuildKit sets the variables of proxies in small letters and in capitals. */
function otherCases({ isClassic }: StageState, visible: readonly string[]): string[] {
  if (isClassic) return [];
  const names = new Set(visible.map((entry) => entry.split('=', 1)[0]!));
  return visible.flatMap((entry) => {
    const [, name = '', value = ''] = /^((?:https?|ftp|no|all)_proxy)=(.*)$/is.exec(entry) ?? [];
    const other = name === name.toLowerCase() ? name.toUpperCase() : name.toLowerCase();
    return name === '' || names.has(other) ? [] : [`${other}=${value}`];
  });
}

function runLine(args: readonly string[], words: readonly string[]): string {
  const recorded = args.length > 0 ? [`|${args.length}`, ...args] : [];
  return `RUN ${[...recorded, ...words].join(' ')} # buildkit`;
}

/** A container needs an image: before the first layer an empty one, for the time of the step. */
function imageOf({ image, build: { engine } }: StageState, resources: AsyncDisposableStack): string {
  if (image !== undefined) return image.id;
  const none = { parent: undefined, layer: undefined, author: '' };
  const { id, json } = childImage(engine, { ...none, config: EMPTY_CONFIG, containerConfig: EMPTY_CONFIG });
  engine.images.insert(id, json, () => undefined);
  resources.defer(() => void engine.images.delete(id, () => undefined));
  return id;
}

/** Runs it to its end. A failed container stays for the user, unless the client wants it removed or has left. */
async function runContainer(
  state: StageState,
  body: Parameters<typeof createContainer>[1],
  words: readonly string[],
  secrets: readonly string[],
): Promise<string> {
  const { engine, options, signal } = state.build;
  signal.throwIfAborted();
  const { container, warnings } = await createContainer(engine, body, undefined, { ofBuild: true });
  const { id } = container;
  for (const warning of warnings) state.output.warn(` ---> [Warning] ${warning}\n`);
  state.output.note(` ---> Running in ${shortId(id)}\n`);
  try {
    const exitCode = await exitCodeOfRun(state, id, secrets);
    if (exitCode === 0) return id;
    const command = (words.length > 0 ? words : (container.config.Cmd ?? [])).join(' ');
    throw new StepFailed(command, exitCode);
  } catch (error) {
    if (signal.aborted) await removeContainer(engine, id, { force: true, volumes: true });
    else if (options.removesAlways) await tellRemoval(state, id);
    else keep(state, id);
    throw error;
  }
}

async function exitCodeOfRun({ build, output }: StageState, id: string, variables: readonly string[]): Promise<number> {
  const { engine, signal } = build;
  const attach = prepareAttach(engine, id, { stream: true, stdout: true, stderr: true });
  const client = new OutputClient(output);
  const attached = attachContainer(engine, attach, () => client);
  attached.catch(() => undefined); // the failure of the start is the one to report
  const end = (): void =>
    void engine.background.run('end a step of a build', { container: id }, async () => await kill());
  const kill = async (): Promise<void> => {
    try {
      await killContainer(engine, id);
    } catch (error) {
      // The container has ended by itself.
      if (!(error instanceof EngineError) || (error.kind !== 'conflict' && error.kind !== 'notFound')) throw error;
    }
  };
  signal.addEventListener('abort', end, { once: true });
  try {
    await startContainer(engine, id, { variables });
    if (signal.aborted) end();
    await attached;
    await engine.runs.of(id).settled();
  } finally {
    signal.removeEventListener('abort', end);
    client.destroy();
  }
  client.flush();
  signal.throwIfAborted();
  const state = engine.containers.get(id)?.state;
  if (state === undefined) throw new EngineError('failed', `the container ${shortId(id)} of a step was removed`);
  return exitCodeOf(state);
}

async function tellRemoval({ build, output }: StageState, id: string): Promise<void> {
  await removeContainer(build.engine, id, { force: true, volumes: true });
  output.note(`Removing intermediate container ${shortId(id)}\n`);
}

/** From now on it is an ordinary container. */
function keep({ build }: StageState, id: string): void {
  if (build.engine.containers.get(id) === undefined) return;
  build.engine.containers.change(id, ({ ofBuild: _over, ...container }) => container);
}

/** Takes a container's output instead of a client. */
class OutputClient extends Duplex {
  readonly #frames: FrameDecoder;
  readonly #texts = { out: new StringDecoder('utf8'), err: new StringDecoder('utf8') };
  readonly #output: StageOutput;

  constructor(output: StageOutput) {
    super({ allowHalfOpen: true });
    this.#output = output;
    this.#frames = new FrameDecoder((type, payload) => {
      if (type === STDOUT) this.#tell(this.#texts.out.write(payload), false);
      else this.#tell(this.#texts.err.write(payload), true);
    });
  }

  override _read(): void {
    // It never sends anything.
  }

  override _write(chunk: Buffer, _encoding: string, done: (error?: Error | null) => void): void {
    callbackify(async () => {
      this.#frames.push(chunk);
      await this.#output.taken(); // meanwhile the container waits, which has no log
    })(done);
  }

  /** The rest of a split character. */
  flush(): void {
    this.#tell(this.#texts.out.end(), false);
    this.#tell(this.#texts.err.end(), true);
  }

  #tell(text: string, isError: boolean): void {
    if (text === '') return;
    if (isError) this.#output.errorText(text);
    else this.#output.text(text);
  }
}
