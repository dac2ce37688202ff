import type { Engine } from '../engine.ts';
import { archiveSource } from '../layers/archive-source.ts';
import type { Layer } from '../layers/records.ts';
import { EngineError } from '../lib/errors.ts';
import type { Image } from './store.ts';

type Needs = Pick<Engine, 'blobs' | 'images' | 'layers'>;
type Log = { error(details: object, message: string): void };

/** Logs at the daemon's start which images miss files. */
export function logMissingFiles(engine: Needs, log: Log): void {
  for (const image of engine.images.all()) {
    const missing = image.layers.flatMap((chainId) => missingOf(engine, engine.layers.get(chainId)));
    if (missing.length === 0) continue;
    const names = engine.images.tagsOf(image.id);
    log.error({ image: image.id, names, missing }, 'files of an image are missing: load it again');
  }
}

/** Throws `failed` when an archive of the image's layers is missing, because the image cannot be saved then. */
export function checkArchives(engine: Needs, image: Image): void {
  for (const chainId of image.layers) {
    const layer = engine.layers.get(chainId);
    if (layer !== undefined && archiveSource(engine, layer) !== undefined) continue;
    const what = layer === undefined ? chainId : missingOf(engine, layer).join(', ');
    throw new EngineError('failed', `a layer of the image ${image.id} is missing: ${what}. Load the image again`);
  }
}

function missingOf({ blobs, layers }: Needs, layer: Layer | undefined): string[] {
  if (layer === undefined) return ['a record of a layer'];
  return [
    ...(layers.folders.isWhole(layer) ? [] : [layers.folders.pathOf(layer)]),
    ...(blobs.has(layer.blob) ? [] : [blobs.path(layer.blob)]),
  ];
}
