import { childImage } from '../../images/configuration/child-image.ts';
import type { Report } from '../../images/progress/progress.ts';
import type { Image } from '../../images/store.ts';
import type { Layer } from '../../layers/records.ts';
import { EngineError } from '../../lib/errors.ts';
import type { RunConfig } from '../../records/run-config.ts';
import { RegistryError } from '../../registry/errors.ts';
import type { StageState } from '../stage.ts';

export type Bringing = Readonly<{
  /** Chain id of the layer below. */
  parent: string | undefined;
  leases: DisposableStack;
  report: Report;
  signal: AbortSignal;
}>;

/** The result of a step on another machine. */
export type ImportedStep = Readonly<{
  createdAt: string;
  /** Brings its layer here, checked; undefined: the step changed no files. */
  bringLayer: ((how: Bringing) => Promise<Layer>) | undefined;
}>;

/** Steps of other machines that a client trusts for its own build (`--cache-from`), by their keys. */
export type ImportedSteps = Readonly<{ find: (key: string) => ImportedStep | undefined }>;

/**
 * The image of a step that a client's cache has. It is no cache for builds of other clients. A layer that cannot be had is like a
 * missing step.
 */
export async function importedImage(state: StageState, key: string, config: RunConfig): Promise<Image | undefined> {
  const { image: parent, build, output, settings } = state;
  const { engine, options, signal } = build;
  const step = options.imported?.find(key);
  if (step === undefined) return undefined;
  using leases = new DisposableStack();
  let layer: Layer | undefined;
  try {
    const how = { parent: parent?.layers.at(-1), leases, report: output.report, signal };
    layer = await step.bringLayer?.(how);
  } catch (error) {
    if (signal.aborted || !(error instanceof RegistryError || error instanceof EngineError)) throw error;
    output.warn(`a layer of the cache cannot be used: ${error.message}\n`);
    return undefined;
  }
  const { createdAt: created } = step;
  const child = childImage(engine, {
    parent,
    layer,
    config: settings.config,
    containerConfig: config,
    author: settings.maintainer,
    step: {
      created,
      ...(settings.maintainer !== '' && { author: settings.maintainer }),
      created_by: (config.Cmd ?? []).join(' '),
      ...(layer === undefined && { empty_layer: true }),
    },
  });
  build.addStored(child.json.length);
  const image = engine.images.insert(child.id, child.json, () => undefined);
  if (parent !== undefined) engine.images.setParent(image.id, parent.id);
  return engine.images.get(image.id) ?? image;
}
