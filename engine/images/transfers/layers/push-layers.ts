import type { Engine } from '../../../engine.ts';
import type { Layer } from '../../../layers/records.ts';
import { shortId } from '../../../lib/ids.ts';
import type { PushTarget } from '../../../registry/upload/push-target.ts';
import type { Report } from '../../progress/progress.ts';
import type { Image } from '../../store.ts';
import type { PushedDocument } from '../pushed-documents.ts';
import { Slots } from '../slots.ts';
import { LayerLines } from '../transfer-lines.ts';
import type { Needs as NeedsOfLayer, Options } from './push-layer.ts';

/** As many as there are threads for it. */
const COMPRESSIONS = 2;

type Needs = NeedsOfLayer & Pick<Engine, 'config'>;

export type Push = {
  target: PushTarget;
  repository: string;
  /** Configurations of the images by their ids, as the images may be removed meanwhile. */
  jsons: ReadonlyMap<string, string>;
  documents: ReadonlyMap<string, PushedDocument>;
  report: Report;
  signal: AbortSignal;
};

/** Several at once, topmost first; a layer that occurs twice is pushed once. The results are by the layers' plain digests. */
export async function pushLayers<T>(
  engine: Needs,
  image: Image,
  { target, repository, report, signal }: Push,
  pushOne: (layer: Layer, options: Options) => Promise<T>,
): Promise<Map<string, T>> {
  const slots = new Slots(engine.config.maxConcurrentUploads);
  const compressions = new Slots(COMPRESSIONS);
  const stop = new AbortController();
  const either = AbortSignal.any([signal, stop.signal]);
  const byDiffId = new Map(
    image.layers.map((chainId) => [engine.layers.get(chainId)!.diffId, engine.layers.get(chainId)!]),
  );
  const jobs = [...byDiffId.values()].toReversed().map((layer) => {
    const lines = new LayerLines(report, engine.clock, shortId(layer.diffId.slice('sha256:'.length)), layer.sizeBytes);
    lines.say('Preparing');
    return { layer, lines };
  });
  const work = jobs.map(async ({ layer, lines }): Promise<[string, T]> => {
    if (slots.areTaken) lines.say('Waiting');
    using _slot = await slots.take(either);
    return [layer.diffId, await pushOne(layer, { target, compressions, repository, lines, signal: either })];
  });
  for (const each of work) each.catch((error: unknown) => stop.abort(error));
  await Promise.allSettled(work);
  if (stop.signal.aborted) throw signal.aborted ? signal.reason : (stop.signal.reason as unknown);
  return new Map(await Promise.all(work));
}
