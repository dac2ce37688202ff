import type { Engine } from '../engine.ts';
import { Blobs } from '../layers/blobs.ts';
import { Layers } from '../layers/layers.ts';
import { ImageStore } from './store.ts';
import { LayerDownloads } from './transfers/layers/layer-downloads.ts';
import { LayerSources } from './transfers/layers/layer-sources.ts';

type Needs = Pick<Engine, 'config' | 'db' | 'log'>;
type ImageParts = {
  blobs: Blobs;
  images: ImageStore;
  layerDownloads: LayerDownloads;
  layerSources: LayerSources;
  layers: Layers;
};

/** The parts that this domain adds to the engine. The stack ends them. */
export function imageParts({ config, db, log }: Needs, undo: AsyncDisposableStack): ImageParts {
  const blobs = new Blobs(config.dataRoot);
  const layers = undo.use(new Layers(db, blobs, config.dataRoot, log));
  const layerDownloads = new LayerDownloads(config.maxConcurrentDownloads);
  return {
    blobs,
    images: new ImageStore(db, layers),
    layerDownloads,
    layerSources: new LayerSources(db, layers),
    layers,
  };
}
