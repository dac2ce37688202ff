import type { Engine } from '../../engine.ts';
import { sha256 } from '../../layers/chain-id.ts';
import { EngineError } from '../../lib/errors.ts';
import { shortId } from '../../lib/ids.ts';
import { measure } from '../../lib/measures.ts';
import type { Credentials } from '../../registry/auth/credentials.ts';
import { withRegistry } from '../../registry/connection/session.ts';
import { isOfTokenServer, RegistryError } from '../../registry/errors.ts';
import { DOCKER_CONFIG, writeManifest, type Descriptor } from '../../registry/manifests.ts';
import { PushTarget } from '../../registry/upload/push-target.ts';
import { checkArchives } from '../missing-files.ts';
import { familiarName, familiarReference, hostAndPath, type Reference } from '../names/reference.ts';
import type { Report } from '../progress.ts';
import type { Image } from '../store.ts';
import { pushLayer, type Needs as NeedsOfLayer } from './push-layer.ts';
import { Slots } from './slots.ts';
import { LayerLines } from './transfer-lines.ts';

/** As many as there are threads for it. */
const COMPRESSIONS = 2;

type Needs = NeedsOfLayer & Pick<Engine, 'config' | 'events' | 'images' | 'layers'>;

type Request = {
  /** Without a tag: all tags of the repository. */
  reference: Reference;
  credentials: Credentials;
  report: Report;
  signal: AbortSignal;
};

/** Pushes an image, or all tags of a repository. It ends with its client. */
export async function pushImages(engine: Needs, { reference, credentials, report, signal }: Request): Promise<void> {
  const measured = measure('image', 'push');
  const { repository } = reference;
  const { host, path } = hostAndPath(repository);
  report({ status: `The push refers to repository [${repository}]` });
  const tagged = selectTags(engine, reference);
  // From here on the images may be removed.
  using leases = new DisposableStack();
  for (const { image } of tagged) for (const chainId of image.layers) leases.use(engine.layers.lease(chainId));
  try {
    await withRegistry(engine, { host, credentials, useMirrors: false, signal }, async (session) => {
      const target = new PushTarget(session, path);
      for (const each of tagged) await pushImage(engine, each, { target, repository, report, signal });
    });
  } catch (error) {
    // For a refusal of the token server only its reason, as in dockerd.
    if (!(error instanceof RegistryError) || !isOfTokenServer(error)) throw error;
    throw error.cause;
  }
  const labels = tagged.length === 1 ? tagged[0]!.image.config.Labels : {};
  engine.events.emit('image', 'push', familiarReference(reference), { ...labels, name: familiarName(repository) });
  measured();
}

type Tagged = Readonly<{ tag: string; image: Image; json: string }>;

function selectTags({ images }: Needs, reference: Reference): Tagged[] {
  if (reference.digest !== undefined) throw new EngineError('invalid', 'cannot push a digest reference');
  const { repository, tag: wanted } = reference;
  const all = images.all().flatMap((image) =>
    images
      .referencesOf(image.id)
      .filter((name) => name.repository === repository && name.tag !== undefined)
      .map((name) => ({ tag: name.tag!, image, json: images.jsonOf(image.id) })),
  );
  const name = familiarName(repository);
  if (all.length === 0) throw new EngineError('failed', `An image does not exist locally with the tag: ${name}`);
  if (wanted === undefined) return all.toSorted((a, b) => (a.tag < b.tag ? -1 : 1));
  const found = all.filter(({ tag }) => tag === wanted);
  if (found.length === 0) throw new EngineError('failed', `tag does not exist: ${familiarReference(reference)}`);
  return found;
}

type Push = { target: PushTarget; repository: string; report: Report; signal: AbortSignal };

async function pushImage(engine: Needs, { tag, image, json }: Tagged, push: Push): Promise<void> {
  const { target, repository, report, signal } = push;
  checkArchives(engine, image);
  const layers = await pushLayers(engine, image, push);
  const bytes = Buffer.from(json);
  if ((await target.sizeOf(image.id, { signal })) === undefined) await target.put(bytes, image.id, signal);
  const config = { mediaType: DOCKER_CONFIG, size: bytes.length, digest: image.id };
  const manifest = writeManifest(config, layers);
  await target.putManifest(tag, manifest, signal);
  const digest = sha256(manifest);
  const byDigest = { repository, digest };
  if (engine.images.get(image.id) !== undefined && engine.images.named(byDigest)?.id !== image.id) {
    engine.images.refer(byDigest, image.id);
  }
  report({ status: `${tag}: digest: ${digest} size: ${manifest.length}` });
  report({ progressDetail: {}, aux: { Tag: tag, Digest: digest, Size: manifest.length } });
}

/** Several at once, topmost first; a layer that occurs twice is pushed once. */
async function pushLayers(
  engine: Needs,
  image: Image,
  { target, repository, report, signal }: Push,
): Promise<Descriptor[]> {
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
  const work = jobs.map(async ({ layer, lines }): Promise<[string, Descriptor]> => {
    if (slots.areTaken) lines.say('Waiting');
    using _slot = await slots.take(either);
    return [layer.diffId, await pushLayer(engine, layer, { target, compressions, repository, lines, signal: either })];
  });
  for (const each of work) each.catch((error: unknown) => stop.abort(error));
  await Promise.allSettled(work);
  if (stop.signal.aborted) throw signal.aborted ? signal.reason : (stop.signal.reason as unknown);
  const pushed = new Map(await Promise.all(work));
  return image.diffIds.map((diffId) => pushed.get(diffId)!);
}
