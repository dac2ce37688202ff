import { mergeConfig } from '../../containers/commit/merge-config.ts';
import { createContainer } from '../../containers/lifecycle/create.ts';
import type { OpenView } from '../../copies/copies.ts';
import { commitLayer } from '../../layers/commit.ts';
import { EngineError, hasCode } from '../../lib/errors.ts';
import { messageOf } from '../../lib/failure-message.ts';
import { newId, shortId } from '../../lib/ids.ts';
import { EMPTY_CONFIG, runConfigOf, type RunConfig } from '../../records/run-config.ts';
import type { StageState } from '../stage.ts';
import { checkVolumes } from './check-volumes.ts';
import { epochIn, makeAtTime } from './folder-times.ts';
import { ownerOf } from './owner.ts';
import { scratchRoot } from './scratch-root.ts';
import { storeStep } from './store-step.ts';

/** A step that changes settings only. */
export async function settingStep(state: StageState, comment: string): Promise<void> {
  const config = state.withComment('#(nop) ', comment);
  if (await state.takeFromCache(config)) return;
  await checkVolumes(state);
  const containerId = await tellContainer(state, config);
  storeStep(state, { layer: undefined, containerConfig: asOfContainer(state, config, containerId), containerId });
  tellRemoval(state, containerId);
}

/** WORKDIR makes its folder. */
export async function workingDirectoryStep(state: StageState, comment: string): Promise<void> {
  const { engine, options } = state.build;
  const epoch = state.isClassic ? undefined : epochIn(options.args);
  const config = state.withComment(`#(nop) ${comment}${epoch === undefined ? '' : ` at ${epoch}`}`);
  if (await state.takeFromCache(config)) return;
  await checkVolumes(state);
  const containerId = await tellContainer(state, config);
  await using root = await scratchRoot(engine, state.image?.id);
  {
    await using files = await root.open();
    const { WorkingDir: path } = state.config;
    const owner = await folderOwner(state, files.path);
    await makeAtTime(files.path, path, epoch, async () => await makeFolder(files.view, path, owner));
  }
  using leases = new DisposableStack();
  const layer = await commitLayer(engine, root.id, leases, 'none', state.build.signal);
  storeStep(state, { layer, containerConfig: asOfContainer(state, config, containerId), containerId });
  tellRemoval(state, containerId);
}

/** In BuildKit the folder is the user's, if the image knows that one. */
async function folderOwner(
  { build: { engine }, config, isClassic }: StageState,
  root: string,
): Promise<Owner | undefined> {
  if (isClassic || config.User === '') return undefined;
  try {
    return (await ownerOf(engine, { chown: config.User, from: '' }, root)).owner;
  } catch (error) {
    if (error instanceof EngineError) return undefined;
    throw error;
  }
}

type Owner = Readonly<{ uid: number; gid: number }>;

async function makeFolder(view: OpenView, path: string, owner: Owner | undefined): Promise<void> {
  try {
    await view.makeFolder(path, owner);
  } catch (error) {
    if (!hasCode(error, 'ENAMETOOLONG')) throw error;
    throw new EngineError('invalid', `Cannot mkdir: ${path}: ${messageOf(error)}`, { cause: error });
  }
}

/**
 * The container of a step without a process. It exists only if the client wants to keep the containers of steps;
 * otherwise it is only an id.
 */
async function tellContainer(state: StageState, config: RunConfig): Promise<string> {
  const { engine, options } = state.build;
  const isKept = !options.removes && state.image !== undefined;
  const id = isKept ? await keptContainer(state, config) : newId();
  engine.log.debug({ container: id }, 'a step of a build');
  state.output.note(` ---> Running in ${shortId(id)}\n`);
  return id;
}

async function keptContainer({ build, image }: StageState, config: RunConfig): Promise<string> {
  const { engine, options } = build;
  const given = Object.fromEntries(Object.entries(config).filter(([, value]) => value !== null));
  const body = { ...given, Image: image!.id, HostConfig: options.hostConfig } as Parameters<typeof createContainer>[1];
  const { container } = await createContainer(engine, body);
  return container.id;
}

function tellRemoval({ build, output }: StageState, id: string): void {
  if (build.options.removes) output.note(`Removing intermediate container ${shortId(id)}\n`);
}

/** A container's settings as docker shows them for a step: completed from its image. */
function asOfContainer({ image }: StageState, config: RunConfig, id: string): RunConfig {
  const merged = mergeConfig(config, image === undefined ? EMPTY_CONFIG : runConfigOf(image.wireConfig));
  return { ...merged, Hostname: merged.Hostname || shortId(id) };
}
