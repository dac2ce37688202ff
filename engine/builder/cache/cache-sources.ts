import type { Engine } from '../../engine.ts';
import { childImage } from '../../images/configuration/child-image.ts';
import type { Image, ImageStore } from '../../images/store.ts';
import { EngineError } from '../../lib/errors.ts';
import { runConfigOf, type RunConfig } from '../../records/run-config.ts';

type Needs = Pick<Engine, 'images' | 'layers' | 'clock'>;

/** Images that a client trusts as a cache (`cachefrom`), by the steps in their histories. */
export class CacheSources {
  readonly #engine: Needs;
  #sources: readonly Image[];

  /** Names of missing images are ignored, as in dockerd. */
  constructor(engine: Needs, names: readonly string[]) {
    this.#engine = engine;
    this.#sources = names.flatMap((name) => imageNamed(engine.images, name) ?? []);
  }

  /** Whether one of them is based on this image. */
  cameFrom(image: Image): boolean {
    return this.#sources.some((source) => {
      for (let at = source.parentId; at !== undefined; at = this.#engine.images.get(at)?.parentId) {
        if (at === image.id) return true;
      }
      return false;
    });
  }

  /**
   * The image of the next step on `parent`, by the history of one of them: that one itself at its end, else an image that is
   * stored for it. From then on only this one counts.
   */
  next(parent: Image | undefined, config: RunConfig): Image | undefined {
    const step = parent?.history.length ?? 0;
    const command = (config.Cmd ?? []).join(' ');
    const source = this.#sources.find((each) => beginsWith(each, parent) && each.history[step]?.createdBy === command);
    if (source === undefined) return undefined;
    const isWhole = step === source.history.length - 1;
    const image = isWhole ? source : this.#stored(source, parent, step, config);
    if (!isWhole) this.#sources = [source];
    if (parent !== undefined) this.#engine.images.setParent(image.id, parent.id);
    return image;
  }

  #stored(source: Image, parent: Image | undefined, step: number, config: RunConfig): Image {
    const { images, layers } = this.#engine;
    const isEmpty = source.history[step]!.emptyLayer;
    const chainId = isEmpty ? undefined : source.layers[parent?.layers.length ?? 0];
    const layer = chainId === undefined ? undefined : layers.get(chainId);
    if (!isEmpty && layer === undefined) throw new EngineError('failed', `a layer of ${source.id} is missing`);
    const { history } = JSON.parse(images.jsonOf(source.id)) as { history: Record<string, unknown>[] };
    const child = childImage(this.#engine, {
      parent,
      layer,
      config: runConfigOf(config),
      containerConfig: config,
      author: source.author,
      step: history[step]!,
    });
    return images.insert(child.id, child.json, () => undefined);
  }
}

function imageNamed(images: ImageStore, name: string): Image | undefined {
  try {
    return images.find(name);
  } catch (error) {
    if (error instanceof EngineError) return undefined;
    throw error;
  }
}

/** Whether history and layers of an image begin with those of another one. */
function beginsWith(image: Image, parent: Image | undefined): boolean {
  if (image.history.length === 0) return false;
  if (parent === undefined) return true;
  return (
    parent.history.length < image.history.length &&
    parent.diffIds.every((diffId, at) => diffId === image.diffIds[at]) &&
    parent.history.every((entry, at) => JSON.stringify(entry) === JSON.stringify(image.history[at]))
  );
}
