import { readdir } from 'node:fs/promises';
import { posix } from 'node:path';

import type { MountOption } from '../../buildfile/mount-option.ts';
import { findSourcesInSteps, sumOfAll, type SourceFound } from '../../copies/transfer/sources.ts';
import { outsideOf } from '../../host/users/id-map.ts';
import { runInSlices } from '../../lib/concurrency/slices.ts';
import { EngineError } from '../../lib/errors.ts';
import { secretFile } from '../secrets.ts';
import type { StageState } from '../stage.ts';
import { boundPlace, copiedPlace, throwAway } from './bound-place.ts';
import { imageRoot } from './scratch-root.ts';
import { agentSocket } from './ssh-agents.ts';

type Spec = Readonly<{
  Type: 'bind' | 'tmpfs' | 'image';
  Source?: string;
  Target: string;
  ReadOnly?: boolean;
  TmpfsOptions?: { SizeBytes?: number };
  ImageOptions?: { Subpath: string };
}>;
type Owner = Readonly<{ uid: number; gid: number }>;

/** Programs find the agent of a step by it. */
const AGENT_VARIABLE = 'SSH_AUTH_SOCK';

type Mounts = Readonly<{
  /** The mount points, which are kept out of the layer. */
  places: readonly string[];
  /** The sources that the step depends on, for the cache. */
  sums: readonly string[];
  /** Variables with secrets, `NAME=value`, which only the process of the step has. */
  env: readonly string[];
  /** To be called when the step has to be done; it may wait for a cache that is locked. */
  prepare: () => Promise<Spec[]>;
}>;

/** The mounts of `RUN --mount`. They are removed with the step; the folders of caches stay. */
export async function runMounts(
  state: StageState,
  options: readonly MountOption[],
  resources: AsyncDisposableStack,
): Promise<Mounts> {
  const mounts: OneMount[] = [];
  const places: string[] = [];
  const sums: string[] = [];
  const env: string[] = [];
  let agents = 0;
  for (const written of options) {
    const option = completed(written, agents);
    if (option.type === 'ssh') {
      if (agents === 0 && !hasVariable(state, AGENT_VARIABLE)) env.push(`${AGENT_VARIABLE}=${option.target}`);
      agents += 1;
    }
    if (option.env !== undefined) {
      const content = await secretOf(state, option);
      if (content !== undefined) env.push(`${option.env}=${content.toString()}`);
      if (option.target === '') continue;
    }
    const target = option.target.startsWith('/')
      ? option.target
      : posix.join('/', state.config.WorkingDir, option.target);
    if (target === '/') throw new EngineError('invalid', `invalid mount target "${target}"`);
    const mount = await mountOf(state, option, target, resources);
    if (mount === undefined) continue;
    mounts.push(mount);
    for (let at = target.indexOf('/', 1); at > 0; at = target.indexOf('/', at + 1)) places.push(target.slice(0, at));
    places.push(target);
    sums.push(`--mount=type=${option.type},target=${target}${mount.sum}`);
  }
  const prepare = async (): Promise<Spec[]> => {
    await lockCaches(state, options, resources);
    const specs: Spec[] = [];
    for (const { make } of mounts) specs.push(await make());
    return specs;
  };
  return { places, sums, env, prepare };
}

function completed(option: MountOption, agents: number): MountOption {
  if (option.type === 'secret') return completeSecret(option);
  if (option.type !== 'ssh') return option;
  return { ...option, id: option.id || 'default', target: option.target || `/run/buildkit/ssh_agent.${agents}` };
}

function hasVariable({ variables }: StageState, name: string): boolean {
  return variables.some((variable) => variable.startsWith(`${name}=`));
}

/** The default of its id is the last part of its path; the default of its path is below /run/secrets. */
function completeSecret(option: MountOption): MountOption {
  const id = option.source || option.id || posix.basename(option.target);
  const place = option.env === undefined ? `/run/secrets/${posix.basename(id)}` : '';
  return { ...option, id, target: option.target || place };
}

async function secretOf({ build }: StageState, { id, isRequired }: MountOption): Promise<Buffer | undefined> {
  const content = await build.options.secrets.get(id);
  if (content === undefined && isRequired) throw new EngineError('invalid', `secret ${id}: not found`);
  return content;
}

type OneMount = Readonly<{ sum: string; make: () => Promise<Spec> }>;

async function mountOf(
  state: StageState,
  option: MountOption,
  target: string,
  resources: AsyncDisposableStack,
): Promise<OneMount | undefined> {
  switch (option.type) {
    case 'tmpfs': {
      const size = option.sizeBytes === undefined ? {} : { TmpfsOptions: { SizeBytes: option.sizeBytes } };
      // oxlint-disable-next-line require-await -- the other kinds have to wait
      return { sum: '', make: async () => ({ Type: 'tmpfs', Target: target, ReadOnly: option.isReadOnly, ...size }) };
    }
    case 'cache':
      return { sum: '', make: async () => await cacheFolder(state, option, target, resources) };
    case 'secret':
      return await secretMount(state, option, target, resources);
    case 'ssh':
      return await agentMount(state, option, target, resources);
    case 'bind':
      return await boundFiles(state, option, target, resources);
  }
}

function bind(source: string, target: string, isReadOnly: boolean): Spec {
  return { Type: 'bind', Source: source, Target: target, ReadOnly: isReadOnly };
}

/** A missing secret is left out unless it is required. Its content does not count for the cache, as in BuildKit. */
async function secretMount(
  state: StageState,
  option: MountOption,
  target: string,
  resources: AsyncDisposableStack,
): Promise<OneMount | undefined> {
  const content = await secretOf(state, option);
  if (content === undefined) return undefined;
  const { uid = 0, gid = 0, mode = 0o400 } = option;
  const make = async (): Promise<Spec> => {
    const { path } = resources.use(
      await secretFile(state.build.engine, content, { ...ownerOnHost(state, { uid, gid }), mode }),
    );
    return bind(path, target, true);
  };
  return { sum: '', make };
}

/** A missing agent is left out unless it is required. */
async function agentMount(
  state: StageState,
  { id, isRequired, uid = 0, gid = 0, mode = 0o600 }: MountOption,
  target: string,
  resources: AsyncDisposableStack,
): Promise<OneMount | undefined> {
  const { build } = state;
  const { agents } = build.options;
  if (!(await agents.has(id))) {
    if (isRequired) throw new EngineError('invalid', `no SSH key ${JSON.stringify(id)} forwarded from the client`);
    return undefined;
  }
  const make = async (): Promise<Spec> => {
    const { path } = resources.use(
      await agentSocket(build.engine, agents, id, { ...ownerOnHost(state, { uid, gid }), mode }),
    );
    return bind(path, target, false);
  };
  return { sum: '', make };
}

/** The owner of a file below the exec root, which is on a tmpfs: kernels before 6.3 map no owners there. */
function ownerOnHost({ build }: StageState, { uid, gid }: Owner): Owner {
  const { idMap } = build.engine;
  if (idMap === undefined) return { uid, gid };
  const [user, group] = [outsideOf(idMap.uids, uid), outsideOf(idMap.gids, gid)];
  if (user !== undefined && group !== undefined) return { uid: user, gid: group };
  throw new EngineError('invalid', `the owner ${uid}:${gid} of a mount is beyond the map of --userns-remap`);
}

/** In one order for all steps, so that no two of them wait for each other. */
async function lockCaches(
  { build, config }: StageState,
  options: readonly MountOption[],
  resources: AsyncDisposableStack,
): Promise<void> {
  const locked = options.filter(({ type, sharing }) => type === 'cache' && sharing === 'locked');
  const ids = new Set(locked.map((option) => cacheId(option, config.WorkingDir)));
  for (const id of [...ids].toSorted()) resources.use(await build.engine.runCaches.lock(id, build.signal));
}

/** Without an id it is the target. */
function cacheId({ id, target }: MountOption, workingDirectory: string): string {
  return id || posix.join('/', target.startsWith('/') ? '' : workingDirectory, target);
}

/** A new cache begins with files of a stage or an image. */
async function fillCache(state: StageState, { from, source }: MountOption, path: string): Promise<void> {
  const { engine, signal } = state.build;
  const image = await state.build.imageFrom(from, state);
  if ((await readdir(path)).length > 0) return;
  await using root = await imageRoot(engine, image.id);
  await using view = await engine.copies.open({ root: path, mounts: [], readOnly: 'nothing' });
  const paths = [{ path: posix.join('/', source) }];
  await view.transfer({ from: root.path, paths, destination: '/', extracts: false, isBuildkit: true }, signal);
}

async function cacheFolder(
  state: StageState,
  option: MountOption,
  target: string,
  resources: AsyncDisposableStack,
): Promise<Spec> {
  const { build, config } = state;
  const owner = { uid: option.uid ?? 0, gid: option.gid ?? 0, mode: option.mode ?? 0o755 };
  const id = cacheId(option, config.WorkingDir);
  const { path } = resources.use(await build.engine.runCaches.take(id, owner, option.sharing ?? 'shared'));
  if (option.from !== '') await fillCache(state, option, path);
  return bind(path, target, option.isReadOnly);
}

/** With the owners of the image, also for a container with a map; links of `inner` are followed below the root. */
function imageMount(imageId: string, inner: string, target: string): Spec {
  const part = inner === '/' ? {} : { ImageOptions: { Subpath: inner.slice(1) } };
  return { Type: 'image', Source: imageId, Target: target, ReadOnly: true, ...part };
}

/** The kernel maps no owners of overlays: with a map, a step gets a copy of files that it may change. */
async function placeOf(
  { build }: StageState,
  { root, inner, isReadOnly }: Readonly<{ root: string; inner: string; isReadOnly: boolean }>,
  resources: AsyncDisposableStack,
): Promise<string> {
  const isCopy = !isReadOnly && build.engine.idMap !== undefined;
  const place = isCopy ? await copiedPlace(build, root, inner) : boundPlace(build.folder, root, inner);
  return resources.use(place).path;
}

async function boundFiles(
  state: StageState,
  option: MountOption,
  target: string,
  resources: AsyncDisposableStack,
): Promise<OneMount> {
  const { build } = state;
  const { isReadOnly } = option;
  const inner = posix.join('/', option.source);
  const wanted = { words: [inner], dialect: build.plan.dialect };
  if (option.from !== '') {
    const image = await build.imageFrom(option.from, state);
    let mounted: Promise<string> | undefined;
    const root = async (): Promise<string> => {
      mounted ??= imageRoot(build.engine, image.id).then((each) => resources.use(each).path);
      return await mounted;
    };
    const compute = async (): Promise<SourceFound[]> =>
      await build.engine.copies.findSources(await root(), wanted, build.signal);
    await build.engine.imageSums.find(image.id, wanted, compute);
    const make = async (): Promise<Spec> => {
      if (build.engine.idMap !== undefined && isReadOnly) return imageMount(image.id, inner, target);
      const path = await placeOf(state, { root: await root(), inner, isReadOnly }, resources);
      return bind(path, target, isReadOnly);
    };
    return { sum: `,from=${image.id}${inner}`, make };
  }
  const context = await build.context();
  if (context === undefined) throw new EngineError('invalid', 'missing build context');
  const found = await runInSlices(findSourcesInSteps(context.tree, wanted), build.signal);
  const make = async (): Promise<Spec> => {
    await context.extract();
    // A step's changes are gone after it, as in BuildKit: other steps get the context as it came.
    const isOverlay = !isReadOnly && build.engine.idMap === undefined;
    const root = isOverlay ? resources.use(throwAway(build.folder, context.root)).path : context.root;
    return bind(await placeOf(state, { root, inner, isReadOnly }, resources), target, isReadOnly);
  };
  return { sum: `,${sumOfAll(found)}`, make };
}
