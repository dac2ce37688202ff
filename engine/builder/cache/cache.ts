import type { Image, ImageStore } from '../../images/store.ts';
import type { RunConfig } from '../../records/run-config.ts';
import { runConfigOf } from '../../records/run-config.ts';
import type { CacheSources } from './cache-sources.ts';

/**
 * Earlier steps: the newest child of an image that a build here has made with the same settings and the same command. After the
 * first miss no further step of a stage is looked up.
 */
export class StepCache {
  readonly #images: ImageStore;
  readonly #isOff: boolean;
  readonly #sources: CacheSources | undefined;
  #isOver = false;

  /** With `sources`, only the ancestors of these count. */
  constructor(images: ImageStore, { isOff, sources }: { isOff: boolean; sources: CacheSources | undefined }) {
    this.#images = images;
    this.#isOff = isOff;
    this.#sources = sources;
  }

  /** `parent`: undefined for `FROM scratch`. `imported`: finds the step in caches of other machines. */
  async find(
    parent: Image | undefined,
    config: RunConfig,
    imported: () => Promise<Image | undefined>,
  ): Promise<Image | undefined> {
    if (this.#isOff || this.#isOver) return undefined;
    const local = this.#local(parent?.id, config);
    const isTrusted = this.#sources === undefined || (local !== undefined && this.#sources.cameFrom(local));
    const found = (isTrusted ? local : this.#sources.next(parent, config)) ?? (await imported());
    this.#isOver = found === undefined;
    return found;
  }

  #local(parentId: string | undefined, config: RunConfig): Image | undefined {
    return this.#images
      .builtOn(parentId)
      .filter(({ stepCommand }) => isSameList(stepCommand, config.Cmd)) // cheap
      .filter(({ wireContainerConfig }) => isSame(runConfigOf(wireContainerConfig), config))
      .reduce<Image | undefined>(
        (best, image) => (best === undefined || isNewer(image, best) ? image : best),
        undefined,
      );
  }
}

function isNewer(image: Image, other: Image): boolean {
  return (image.createdAt?.epochNanoseconds ?? 0n) > (other.createdAt?.epochNanoseconds ?? 0n);
}

/** As docker compares: fields that a step cannot change do not count. */
function isSame(a: RunConfig, b: RunConfig): boolean {
  return (
    !a.OpenStdin &&
    !b.OpenStdin &&
    a.AttachStdout === b.AttachStdout &&
    a.AttachStderr === b.AttachStderr &&
    a.User === b.User &&
    a.Tty === b.Tty &&
    isSameList(a.Cmd, b.Cmd) &&
    isSameList(a.Env, b.Env) &&
    isSameList(a.Entrypoint, b.Entrypoint) &&
    isSameMap(a.Labels, b.Labels) &&
    isSameMap(a.ExposedPorts, b.ExposedPorts) &&
    isSameMap(a.Volumes, b.Volumes)
  );
}

function isSameList(a: readonly string[] | null, b: readonly string[] | null): boolean {
  return (a ?? []).length === (b ?? []).length && (a ?? []).every((word, index) => word === b?.[index]);
}

/** Compares the keys of two sets. */
function isSameMap(a: object | null | undefined, b: object | null | undefined): boolean {
  const [one, other] = [Object.entries(a ?? {}), new Map(Object.entries(b ?? {}))];
  return (
    one.length === other.size &&
    one.every(([key, value]) => other.has(key) && (typeof value !== 'string' || other.get(key) === value))
  );
}
