import { join, posix } from 'node:path';

import type { MountOption } from '../../buildfile/mount-option.ts';
import { pathMatches } from '../../copies/transfer/path-pattern.ts';
import { findSources, sumOfAll } from '../../copies/transfer/sources.ts';
import { EngineError } from '../../lib/errors.ts';
import { secretFile } from '../secrets.ts';
import type { StageState } from '../stage.ts';
import { imageRoot } from './scratch-root.ts';

type Spec = Readonly<{
  Type: 'bind' | 'tmpfs';
  Source?: string;
  Target: string;
  ReadOnly?: boolean;
  TmpfsOptions?: { SizeBytes?: number };
}>;
type Mounts = Readonly<{
  specs: readonly Spec[];
  /** The mount points, which are kept out of the layer. */
  places: readonly string[];
  /** The sources that the step depends on, for the cache. */
  sums: readonly string[];
  /** To be called before the files of the mounts are used. */
  prepare: () => Promise<void>;
}>;

/** The mounts of `RUN --mount`. They are removed with the step; the folders of caches stay. */
export async function runMounts(
  state: StageState,
  options: readonly MountOption[],
  resources: AsyncDisposableStack,
): Promise<Mounts> {
  const specs: Spec[] = [];
  const places: string[] = [];
  const sums: string[] = [];
  for (const option of options) {
    const target = option.target.startsWith('/')
      ? option.target
      : posix.join('/', state.config.WorkingDir, option.target);
    const mount = await mountOf(state, option, target, resources);
    if (mount === undefined) continue;
    specs.push(mount.spec);
    for (let at = target.indexOf('/', 1); at > 0; at = target.indexOf('/', at + 1)) places.push(target.slice(0, at));
    places.push(target);
    sums.push(`--mount=type=${option.type},target=${target}${mount.sum}`);
  }
  const prepare = async (): Promise<void> => {
    if (options.some(({ type, from }) => type === 'bind' && from === '')) await state.build.context?.extract();
  };
  return { specs, places, sums, prepare };
}

type OneMount = Readonly<{ spec: Spec; sum: string }>;

async function mountOf(
  state: StageState,
  option: MountOption,
  target: string,
  resources: AsyncDisposableStack,
): Promise<OneMount | undefined> {
  switch (option.type) {
    case 'tmpfs': {
      const size = option.sizeBytes === undefined ? {} : { TmpfsOptions: { SizeBytes: option.sizeBytes } };
      return { spec: { Type: 'tmpfs', Target: target, ...size }, sum: '' };
    }
    case 'cache':
      return { spec: bind(await cacheFolder(state, option, target, resources), target, option.isReadOnly), sum: '' };
    case 'secret':
      return await secretMount(state, option, target, resources);
    case 'bind':
      return await boundFiles(state, option, target, resources);
  }
}

function bind(source: string, target: string, isReadOnly: boolean): Spec {
  return { Type: 'bind', Source: source, Target: target, ReadOnly: isReadOnly };
}

/** A missing secret is left out unless it is required. Its content does not count for the cache, as in BuildKit. */
async function secretMount(
  { build }: StageState,
  { id, isRequired, uid, gid, mode = 0o400 }: MountOption,
  target: string,
  resources: AsyncDisposableStack,
): Promise<OneMount | undefined> {
  const content = build.options.secrets.get(id);
  if (content !== undefined) {
    const { path } = resources.use(await secretFile(build.engine, content, { uid, gid, mode }));
    return { spec: bind(path, target, true), sum: '' };
  }
  if (!isRequired) return undefined;
  throw new EngineError('invalid', `secret ${id}: not found`);
}

async function cacheFolder(
  { build }: StageState,
  option: MountOption,
  target: string,
  resources: AsyncDisposableStack,
): Promise<string> {
  if (option.from !== '')
    throw new EngineError('invalid', 'a cache that begins with files of a stage is not supported');
  const owner = { uid: option.uid, gid: option.gid, mode: option.mode ?? 0o755 };
  return resources.use(await build.engine.runCaches.take(option.id || target, owner)).path;
}

async function boundFiles(
  state: StageState,
  option: MountOption,
  target: string,
  resources: AsyncDisposableStack,
): Promise<OneMount> {
  const { build } = state;
  const source = option.source === '' ? '/' : option.source;
  const inner = posix.join('/', source);
  if (option.from !== '') {
    const image = await build.imageFrom(option.from, state);
    const { path } = resources.use(await imageRoot(build.engine, image.id));
    await build.engine.imageSums.find(
      image.id,
      [inner],
      async () => await build.engine.copies.findSources(path, [inner]),
    );
    return { spec: bind(join(path, inner), target, option.isReadOnly), sum: `,from=${image.id}${inner}` };
  }
  if (build.context === undefined) throw new EngineError('invalid', 'missing build context');
  const found = findSources(build.context.tree, [inner], pathMatches);
  const resolved = build.context.tree.resolve(inner);
  return {
    spec: bind(join(build.context.root, resolved?.path ?? ''), target, option.isReadOnly),
    sum: `,${sumOfAll(found)}`,
  };
}
