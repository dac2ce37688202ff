import type { CredentialsByHost } from '../../builder/options.ts';
import type { KeyedStep } from '../../builder/stage.ts';
import type { Engine } from '../../engine.ts';
import type { Layer } from '../../layers/records.ts';
import { CACHE_CONFIG, OCI_MANIFEST, type Descriptor } from '../../registry/manifests.ts';
import { textBlob, type Blob } from '../export/packed-image.ts';
import type { Built } from '../frontend/build.ts';
import { Vertex } from '../progress/vertex.ts';
import type { Session } from '../session/session.ts';
import type { Solve } from '../solve.ts';
import { formatCache, type CacheLayer, type WrittenStep } from './cache-config.ts';
import type { CacheEntry } from './cache-options.ts';
import { exportToClient } from './export-local.ts';
import { exportToRegistry } from './export-registry.ts';
import { CACHE_LAYER } from './read-manifest.ts';

type Exported = ReadonlyMap<string, string>;
type How = Readonly<{ build: Solve; credentials: CredentialsByHost; sessionOf: () => Promise<Session> }>;

/** A place for the blobs of a cache. */
export type Target = Readonly<{
  /** Stores a layer with gzip. */
  putLayer: (layer: Layer) => Promise<Descriptor>;
  putConfig: (blob: Blob) => Promise<void>;
  /** Stores the manifest; behind all others. */
  putManifest: (blob: Blob) => Promise<void>;
}>;

/** Writes the steps of a build for builds on other machines (`--cache-to`); returns the values for the client. */
export async function exportCaches(engine: Engine, built: readonly Built[], how: How): Promise<Exported> {
  const exported = new Map<string, string>();
  for (const entry of how.build.caches.exports) {
    const vertex = new Vertex(how.build.queue, engine.clock, `exporting cache to ${placeOf(entry)}`);
    const isOptional = entry.attributes.get('ignore-error') === 'true';
    try {
      const manifest = await vertex.run(async () => await exportOne(engine, built, entry, { ...how, vertex }));
      if (entry.type === 'local') exported.set('cache.manifest', JSON.stringify(manifest));
    } catch (error) {
      if (!isOptional || how.build.over.aborted) throw error; // else the client has been told
    }
  }
  return exported;
}

function placeOf({ type }: CacheEntry): string {
  return type === 'local' ? 'client directory' : type;
}

async function exportOne(
  engine: Engine,
  built: readonly Built[],
  entry: CacheEntry,
  { build, credentials, sessionOf, vertex }: How & Readonly<{ vertex: Vertex }>,
): Promise<Descriptor> {
  const signal = build.over;
  const wanted = stepsOf(built, entry.attributes.get('mode') === 'max');
  using leases = new DisposableStack();
  for (const { image } of wanted) for (const chainId of image.layers) leases.use(engine.layers.lease(chainId));
  vertex.status('preparing build cache for export', 0, 0, true);
  const work = async (target: Target): Promise<Descriptor> =>
    await writeCache(engine, wanted, target, { vertex, signal });
  if (entry.type === 'local') return await exportToClient(engine, { entry, session: await sessionOf(), signal }, work);
  return await exportToRegistry(engine, { entry, credentials, vertex, signal }, work);
}

/** Those of the results' own stages, or of all stages, each once. */
export function stepsOf(built: readonly Built[], isMax: boolean): KeyedStep[] {
  const all = built.flatMap(({ steps, allSteps }) => (isMax ? allSteps : steps));
  return [...new Map(all.map((step) => [step.key, step])).values()];
}

/** The layers come first, so that nothing names a blob that is not there. */
async function writeCache(
  engine: Engine,
  wanted: readonly KeyedStep[],
  target: Target,
  { vertex, signal }: Readonly<{ vertex: Vertex; signal: AbortSignal }>,
): Promise<Descriptor> {
  const layers = new Map<string, CacheLayer>();
  const descriptors = new Map<string, Descriptor>();
  const put = async (layer: Layer): Promise<CacheLayer> => {
    const { digest, size } = await target.putLayer(layer);
    vertex.status(`writing layer ${digest}`, 0, 0, true);
    descriptors.set(digest, { mediaType: CACHE_LAYER, digest, size });
    const parent = [...layers.keys()].indexOf(layer.parent ?? '');
    return { blob: digest, parent, annotations: { mediaType: CACHE_LAYER, diffID: layer.diffId, size } };
  };
  const steps = await writtenSteps(engine, wanted, async (layer) => {
    signal.throwIfAborted();
    const known = layers.get(layer.chainId);
    if (known !== undefined) return known;
    const made = await put(layer);
    layers.set(layer.chainId, made);
    return made;
  });
  const config = textBlob(formatCache([...layers.values()], steps), CACHE_CONFIG);
  vertex.status(`writing config ${config.descriptor.digest}`, 0, 0, true);
  await target.putConfig(config);
  const manifest = textBlob(
    JSON.stringify({
      schemaVersion: 2,
      mediaType: OCI_MANIFEST,
      config: config.descriptor,
      layers: [...descriptors.values()],
    }),
    OCI_MANIFEST,
  );
  vertex.status(`writing cache image manifest ${manifest.descriptor.digest}`, 0, 0, true);
  await target.putManifest(manifest);
  return manifest.descriptor;
}

/** Without those whose layers have been removed meanwhile. */
async function writtenSteps(
  { layers }: Pick<Engine, 'layers'>,
  wanted: readonly KeyedStep[],
  layerOf: (layer: Layer) => Promise<CacheLayer>,
): Promise<WrittenStep[]> {
  const steps: WrittenStep[] = [];
  for (const { key, parent, image } of wanted) {
    const last = image.history.at(-1);
    const own = last?.emptyLayer === false ? layers.get(image.layers.at(-1) ?? '') : undefined;
    if (last === undefined || (!last.emptyLayer && own === undefined)) continue;
    const createdAt = (last.created ?? Temporal.Instant.fromEpochMilliseconds(0)).toString();
    steps.push({ key, parent, createdAt, layer: own && (await layerOf(own)) });
  }
  return steps;
}

/** The steps of an image as a field of its configuration (`--cache-to type=inline`), in base64. */
export async function inlineCache(engine: Pick<Engine, 'layers'>, wanted: readonly KeyedStep[]): Promise<string> {
  const layers = new Map<string, CacheLayer>();
  const steps = await writtenSteps(engine, wanted, async ({ diffId, parent = '', chainId }) => {
    const below = [...layers.keys()].indexOf(parent);
    return await Promise.resolve(layers.getOrInsertComputed(chainId, () => ({ blob: diffId, parent: below })));
  });
  return Buffer.from(formatCache([...layers.values()], steps)).toString('base64');
}
