import type { ImportedStep, ImportedSteps } from '../../builder/cache/imported-steps.ts';
import type { CredentialsByHost } from '../../builder/options.ts';
import type { Engine } from '../../engine.ts';
import type { Platform } from '../../images/configuration/platform.ts';
import { EngineError } from '../../lib/errors.ts';
import { RegistryError } from '../../registry/errors.ts';
import type { StatusQueue } from '../progress/status-queue.ts';
import { Vertex } from '../progress/vertex.ts';
import { ClientContent } from '../session/client-content.ts';
import type { Session } from '../session/session.ts';
import { GrpcError } from '../wire/status.ts';
import { bringLayer, type Origin } from './bring-layer.ts';
import type { ReadStep } from './cache-config.ts';
import type { CacheEntry } from './cache-options.ts';
import { stepsOfClient } from './import-local.ts';
import { stepsOfImage, stepsOfRegistry } from './import-registry.ts';
import type { CachedLayer } from './read-manifest.ts';

const MISSING: ReadonlySet<string> = new Set(['MANIFEST_UNKNOWN', 'NAME_UNKNOWN']);

type Request = Readonly<{
  session: Session;
  queue: StatusQueue;
  credentials: CredentialsByHost;
  platforms: readonly (Platform | undefined)[];
  signal: AbortSignal;
}>;

/** Steps as a cache names them, and the place of their layers. */
export type Found = Readonly<{ steps: readonly ReadStep[]; layerOf: (step: ReadStep) => CachedLayer | undefined }>;

/** The steps of a client's caches. A cache that cannot be read is told and left out. Its connections are open until `resources` ends. */
export async function importCaches(
  engine: Engine,
  entries: readonly CacheEntry[],
  request: Request,
  resources: DisposableStack,
): Promise<ImportedSteps | undefined> {
  if (entries.length === 0) return undefined;
  const all = new Map<string, ImportedStep>();
  for (const entry of entries) {
    try {
      await importOne(engine, entry, request, { all, resources });
    } catch (error) {
      if (request.signal.aborted || !(error instanceof EngineError || error instanceof GrpcError)) throw error;
      engine.log.debug({ err: error }, 'a cache of a build cannot be read'); // its client has been told
    }
  }
  return { find: (key) => all.get(key) };
}

type Into = Readonly<{ all: Map<string, ImportedStep>; resources: DisposableStack }>;

async function importOne(engine: Engine, entry: CacheEntry, request: Request, { all, resources }: Into): Promise<void> {
  const { queue, session, signal } = request;
  const { type, attributes } = entry;
  const shown = type === 'local' ? `local:${attributes.get('src') ?? ''}` : attributes.get('ref')!;
  const vertex = new Vertex(queue, engine.clock, `importing cache manifest from ${shown}`);
  await vertex.run(async () => {
    if (type === 'local') {
      const content = new ClientContent(session, `local:${attributes.get('src') ?? ''}`, signal);
      add(await stepsOfClient(content, attributes.get('digest')!), { content });
      return;
    }
    const here = stepsOfImage(engine, shown);
    if (here !== undefined) return add(here, undefined);
    try {
      for (const platform of request.platforms) {
        const { found, mediaType, repository } = await stepsOfRegistry(
          engine,
          shown,
          { ...request, platform },
          resources,
        );
        vertex.status(`inferred cache manifest type: ${mediaType}`, 0, 0, true);
        add(found, { repository });
      }
    } catch (error) {
      if (!(error instanceof EngineError)) throw error;
      const isMissing = error instanceof RegistryError && MISSING.has(error.code);
      const reason = isMissing ? `${shown}: not found` : error.message;
      throw new EngineError(error.kind, `failed to configure registry cache importer: ${reason}`, { cause: error });
    }
  });

  function add({ steps, layerOf }: Found, origin: Origin | undefined): void {
    for (const step of steps) {
      const layer = step.layer && layerOf(step);
      if (all.has(step.key) || (step.layer !== undefined && layer === undefined)) continue;
      const bring: ImportedStep['bringLayer'] = layer && (async (how) => await bringLayer(engine, origin, layer, how));
      all.set(step.key, { createdAt: step.createdAt, bringLayer: bring });
    }
  }
}
