import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';

import { baseImage } from '../../builder/base-images.ts';
import { planIn } from '../../builder/build-request.ts';
import { Build, type NamedImages } from '../../builder/build.ts';
import { BuildContext } from '../../builder/context/context.ts';
import { remoteContext } from '../../builder/context/remote.ts';
import type { BuildOptions } from '../../builder/options.ts';
import { MAX_NAMES, refuseAbove } from '../../buildfile/limits.ts';
import type { Engine } from '../../engine.ts';
import { HOST_PLATFORM, platformText, type Platform } from '../../images/configuration/platform.ts';
import { familiarReference, parseReference, withDefaultTag } from '../../images/names/reference.ts';
import type { Image } from '../../images/store.ts';
import { EngineError } from '../../lib/errors.ts';
import { StageVertexes } from '../progress/stage-vertexes.ts';
import { StatusQueue } from '../progress/status-queue.ts';
import { Vertex } from '../progress/vertex.ts';
import { clientContext, ignoreFileOf, type Request } from './input.ts';
import { layoutImage } from './layout-image.ts';
import { imageIdIn } from './result-definition.ts';

const PREFIX = 'context:';
/** All files of a context as an image: the cache finds it by their content. */
const WHOLE = 'FROM scratch\nCOPY . /\n';

type How = Readonly<{ request: Request; options: BuildOptions; folder: string }>;

/** The images of `--build-context`: other images, or files of the client or of an address. */
export class NamedContexts implements NamedImages {
  readonly #engine: Engine;
  readonly #how: How;
  /** By their names, some of them with `::` and a platform. */
  readonly #addresses = new Map<string, string>();
  readonly #names = new Set<string>();
  readonly #images = new Map<string, Promise<Image>>();

  constructor(engine: Engine, how: How) {
    this.#engine = engine;
    this.#how = how;
    const named = [...how.request.attributes].filter(([key]) => key.startsWith(PREFIX));
    refuseAbove(MAX_NAMES, named.length, 'the list of build contexts', 'names');
    for (const [key, address] of named) {
      const name = key.slice(PREFIX.length);
      const [, plain, platform = ''] = /^(.*?)(::.*)?$/s.exec(name)!;
      this.#addresses.set(keyOf(plain!) + platform, address);
      this.#names.add(keyOf(plain!));
    }
  }

  has(name: string): boolean {
    return this.#names.size > 0 && this.#names.has(keyOf(name));
  }

  async image(name: string, platform: Platform | undefined): Promise<Image> {
    const key = keyOf(name);
    const wanted = platform ?? this.#how.options.platform ?? HOST_PLATFORM;
    const address = this.#addresses.get(`${key}::${platformText(wanted)}`) ?? this.#addresses.get(key);
    if (address === undefined)
      throw new EngineError('notFound', `the build context ${name} has no image for ${platformText(wanted)}`);
    if (address.startsWith('input:')) return this.#resultOf(address.slice('input:'.length));
    if (address.startsWith('oci-layout:')) return await this.#layout(key, address, wanted);
    const [, reference] = /^docker-image:\/\/(.*)$/s.exec(address) ?? [];
    if (reference !== undefined) return await this.#otherImage(key, reference, platform);
    return await this.#images.getOrInsertComputed(key, async () => await this.#filesOf(key, address));
  }

  #resultOf(name: string): Image {
    const definition = this.#how.request.inputs.get(name);
    if (definition === undefined) throw new EngineError('invalid', `invalid input ${name}`);
    const image = this.#engine.images.get(imageIdIn(definition));
    if (image === undefined) throw new EngineError('notFound', `the result of ${name} was removed meanwhile`);
    return image;
  }

  async #layout(name: string, address: string, platform: Platform): Promise<Image> {
    const { session, signal } = this.#how.request;
    const key = `${address} ${platformText(platform)}`;
    const vertex = this.#vertex(`[context ${name}] ${address}`);
    const bring = async (): Promise<Image> =>
      await layoutImage(this.#engine, address, platform, { session, report: vertex.report, signal });
    return await this.#images.getOrInsertComputed(key, async () => await vertex.run(bring));
  }

  async #otherImage(name: string, reference: string, platform: Platform | undefined): Promise<Image> {
    const { options, request } = this.#how;
    const vertex = this.#vertex(`[context ${name}] ${reference}`);
    const { pulls, credentials } = options;
    return await vertex.run(
      async () =>
        await baseImage(this.#engine, reference, {
          pulls,
          credentials,
          output: vertex,
          signal: request.signal,
          platform: platform ?? options.platform,
        }),
    );
  }

  async #filesOf(name: string, address: string): Promise<Image> {
    const path = join(this.#how.folder, `named-${this.#images.size}`);
    await mkdir(path, { mode: 0o700 });
    const [, folder] = /^local:(.*)$/s.exec(address) ?? [];
    using context =
      folder === undefined ? await this.#remote(name, address, path) : await this.#local(name, folder, path);
    return await this.#asImage(context, path);
  }

  async #local(name: string, folder: string, path: string): Promise<BuildContext> {
    const { request } = this.#how;
    const excluded = async (): Promise<readonly string[]> =>
      await ignoreFileOf(this.#engine, request, folder, `[context ${name}] load .dockerignore`);
    const title = `[context ${name}] load from client`;
    return await clientContext(this.#engine, request, { folder, title, excluded, path });
  }

  async #remote(name: string, address: string, path: string): Promise<BuildContext> {
    const { signal } = this.#how.request;
    const vertex = this.#vertex(`[context ${name}] ${address}`);
    return await vertex.run(async () => {
      const remote = await remoteContext(
        this.#engine,
        address,
        { folder: path, report: vertex.report, signal },
        'buildkit',
      );
      if ('text' in remote) throw new EngineError('invalid', `the build context ${name} is a file: use an archive`);
      return await BuildContext.receive(this.#engine, remote.archive, path, signal);
    });
  }

  async #asImage(context: BuildContext, folder: string): Promise<Image> {
    const { options, request } = this.#how;
    const { signal } = request;
    const plan = await planIn('Dockerfile', WHOLE, signal, 'buildkit');
    const hidden = new StatusQueue();
    const { image } = await new Build(this.#engine, {
      options: {
        ...options,
        target: '',
        labels: {},
        args: {},
        usesCache: true,
        uncachedStages: new Set(),
        cacheFrom: [],
      },
      plan,
      context: async () => await Promise.resolve(context),
      folder,
      output: (stages) => new StageVertexes(hidden, this.#engine.clock, { stages, all: plan.stages, shown: '' }),
      signal,
      wantsAux: false,
    }).run();
    return image;
  }

  #vertex(title: string): Vertex {
    return new Vertex(this.#how.request.queue, this.#engine.clock, title);
  }
}

/** As BuildKit compares names: `busybox` is `docker.io/library/busybox:latest`. */
function keyOf(name: string): string {
  try {
    return familiarReference(withDefaultTag(parseReference(name.toLowerCase()))).replace(/:latest$/, '');
  } catch (error) {
    if (error instanceof EngineError) return name.toLowerCase();
    throw error;
  }
}
