import type { Engine } from '../../engine.ts';
import { applyLayer } from '../../layers/apply.ts';
import { sha256 } from '../../layers/chain-id.ts';
import { runConfigOf, type RunConfig } from '../../records/run-config.ts';
import { VERSION } from '../../version.ts';
import { goArchitecture } from '../configuration/architecture.ts';
import type { Platform } from '../configuration/platform.ts';
import { emitImageEvent } from '../event.ts';
import type { Reference } from '../names/reference.ts';
import { giveName } from '../names/tag.ts';
import type { Image } from '../store.ts';

type Needs = Pick<Engine, 'db' | 'images' | 'layers' | 'blobs' | 'archives' | 'locks' | 'clock' | 'events'>;

type Options = {
  /** Settings from the client's instructions. */
  config: RunConfig;
  message: string;
  name: Reference | undefined;
  /** Default: this machine's. */
  platform?: Platform | undefined;
  /** Ends it in the middle. */
  signal?: AbortSignal;
};

/**
 * Creates an image with one layer from the archive of a root file system. If the client leaves before the layer is there,
 * no image is created.
 */
export async function importImage(
  engine: Needs,
  upload: AsyncIterable<Uint8Array>,
  { config, message, name, platform, signal }: Options,
): Promise<Image> {
  await using arrivals = engine.blobs.arrivals();
  const file = `${arrivals.path}/layer`;
  const { digest } = await engine.archives.receive(upload, file, signal);
  using leases = new DisposableStack();
  const layer = await applyLayer(engine, { file, digest, parent: undefined }, leases, undefined, signal);
  await engine.blobs.sync();
  signal?.throwIfAborted();

  const created = engine.clock.now().toString();
  const json = JSON.stringify({
    architecture: platform?.architecture ?? goArchitecture(),
    ...(platform !== undefined && platform.variant !== '' && { variant: platform.variant }),
    comment: message,
    config: runConfigOf(config),
    created,
    docker_version: VERSION,
    history: [{ created, comment: message }],
    os: platform?.os ?? 'linux',
    rootfs: { type: 'layers', diff_ids: [layer.diffId] },
  });
  return engine.images.insert(sha256(json), json, (image) => {
    if (name !== undefined) giveName(engine, image.id, name);
    emitImageEvent(engine, 'import', image);
  });
}
