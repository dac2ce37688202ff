import type { CredentialsByHost } from '../../builder/options.ts';
import type { Engine } from '../../engine.ts';
import { parseImage } from '../../images/configuration/image-json.ts';
import type { Platform } from '../../images/configuration/platform.ts';
import { hostAndPath, parseReference, withDefaultTag } from '../../images/names/reference.ts';
import { manifestFor } from '../../images/transfers/platform.ts';
import { parseBoundedJson, UnboundedJsonError } from '../../lib/bounded-json.ts';
import { EngineError } from '../../lib/errors.ts';
import { ANONYMOUS } from '../../registry/auth/credentials.ts';
import { withRegistry } from '../../registry/connection/session.ts';
import { RegistryError } from '../../registry/errors.ts';
import { CACHE_CONFIG } from '../../registry/manifests.ts';
import { Repository } from '../../registry/repository.ts';
import { INLINE_FIELD, parseCache, type ReadStep } from './cache-config.ts';
import type { Found } from './import.ts';
import { layerOfCache, layerOfImage } from './read-manifest.ts';

type How = Readonly<{ credentials: CredentialsByHost; platform: Platform | undefined; signal: AbortSignal }>;

const NONE: Found = { steps: [], layerOf: () => undefined };

/** The steps of a cache in a registry: one of its own, or one within an image. Other caches have none for us. */
export async function stepsOfRegistry(
  engine: Engine,
  name: string,
  { credentials, platform, signal }: How,
  resources: DisposableStack,
): Promise<{ found: Found; mediaType: string; repository: Repository }> {
  const reference = withDefaultTag(parseReference(name));
  const { host, path } = hostAndPath(reference.repository);
  const given = (await credentials.get(host)) ?? ANONYMOUS;
  return await withRegistry(engine, { host, credentials: given, useMirrors: true, signal }, async (session) => {
    const repository = new Repository(session, path);
    const manifest = await repository.manifest(reference.digest ?? reference.tag!, signal, 'cache');
    const found =
      'index' in manifest && manifest.index.manifests.some(({ mediaType }) => mediaType === CACHE_CONFIG)
        ? NONE
        : await stepsIn(repository, await manifestFor(repository, manifest, { platform, signal }), signal);
    resources.use(session.hold());
    return { found, mediaType: manifest.mediaType, repository };
  });
}

/** The steps of a cache within an image that is here; undefined without one. */
export function stepsOfImage({ images }: Pick<Engine, 'images'>, name: string): Found | undefined {
  try {
    const { id, diffIds } = images.find(name);
    const steps = inlineSteps(parsedObject(images.jsonOf(id)));
    const layerOf = ({ layer }: ReadStep): ReturnType<Found['layerOf']> =>
      layer !== undefined && diffIds.includes(layer.blob)
        ? { descriptor: { mediaType: undefined, digest: layer.blob, size: 0 }, diffId: layer.blob }
        : undefined;
    return steps.length === 0 ? undefined : { steps, layerOf };
  } catch (error) {
    if (error instanceof EngineError) return undefined;
    throw error;
  }
}

async function stepsIn(
  repository: Repository,
  { manifest }: Awaited<ReturnType<typeof manifestFor>>,
  signal: AbortSignal,
): Promise<Found> {
  if (!('config' in manifest)) return NONE;
  const text = await repository.config(manifest.config, signal);
  if (manifest.config.mediaType === CACHE_CONFIG)
    return { steps: parseCache(text), layerOf: (step) => layerOfCache(manifest, step) };
  const json = parsedObject(text);
  const { diffIds } = parseImage(json);
  return { steps: inlineSteps(json), layerOf: (step) => layerOfImage(manifest, diffIds, step) };
}

/** In base64, as Go writes bytes. */
function inlineSteps(json: Readonly<Record<string, unknown>>): ReadStep[] {
  const value = json[INLINE_FIELD];
  return typeof value === 'string' ? parseCache(Buffer.from(value, 'base64').toString()) : [];
}

function parsedObject(text: string): Readonly<Record<string, unknown>> {
  try {
    const json = parseBoundedJson(text);
    if (typeof json === 'object' && json !== null) return json as Readonly<Record<string, unknown>>;
  } catch (error) {
    const isBad = error instanceof UnboundedJsonError || error instanceof SyntaxError;
    if (!isBad) throw error;
  }
  throw new RegistryError('the image configuration is not JSON');
}
