import type { Engine } from '../../engine.ts';
import { sha256 } from '../../layers/chain-id.ts';
import { EngineError } from '../../lib/errors.ts';
import { measure } from '../../lib/measures.ts';
import type { Credentials } from '../../registry/auth/credentials.ts';
import { withRegistry } from '../../registry/connection/session.ts';
import { isOfTokenServer, RegistryError } from '../../registry/errors.ts';
import { DOCKER_CONFIG, DOCKER_MANIFEST, writeManifest } from '../../registry/manifests.ts';
import { PushTarget } from '../../registry/upload/push-target.ts';
import type { Platform } from '../configuration/platform.ts';
import { descriptorOf } from '../manifests/documents.ts';
import { checkArchives } from '../missing-files.ts';
import { familiarName, familiarReference, hostAndPath, type Reference } from '../names/reference.ts';
import { describe } from '../present.ts';
import type { Report } from '../progress/progress.ts';
import type { Image } from '../store.ts';
import { pushLayer, type Needs as NeedsOfLayer } from './layers/push-layer.ts';
import { pushLayers, type Push } from './layers/push-layers.ts';
import { choosePushed, type Choice } from './push-choice.ts';
import { hasExactLayers, pushIndex, pushManifest } from './push-documents.ts';
import { pushedDocuments } from './pushed-documents.ts';

type Needs = NeedsOfLayer & Pick<Engine, 'config' | 'events' | 'images' | 'imageUsage' | 'layers'>;

type Request = {
  /** Without a tag: all tags of the repository. */
  reference: Reference;
  credentials: Credentials;
  report: Report;
  signal: AbortSignal;
  /** Undefined: all platforms of an index, if they are here. */
  platform?: Platform | undefined;
};

/** Pushes an image, or all tags of a repository. It ends with its client. */
export async function pushImages(
  engine: Needs,
  { reference, credentials, report, signal, platform }: Request,
): Promise<void> {
  const measured = measure('image', 'push');
  const { repository } = reference;
  const { host, path } = hostAndPath(repository);
  report({ status: `The push refers to repository [${repository}]` });
  const tagged = selectTags(engine, reference);
  // From here on the images may be removed.
  using leases = new DisposableStack();
  const jsons = new Map<string, string>();
  for (const { image } of tagged) {
    for (const each of engine.images.withPlatforms(image)) {
      jsons.set(each.id, engine.images.jsonOf(each.id));
      for (const chainId of each.layers) leases.use(engine.layers.lease(chainId));
    }
  }
  const documents = pushedDocuments(
    engine,
    tagged.flatMap(({ target }) => target ?? []),
  );
  const chosen = tagged.map((each) => {
    const ref = familiarReference({ repository, tag: each.tag });
    return { tag: each.tag, choice: choosePushed(engine, { ...each, ref }, platform) };
  });
  try {
    await withRegistry(engine, { host, credentials, useMirrors: false, signal }, async (session) => {
      const target = new PushTarget(session, path);
      for (const { tag, choice } of chosen) {
        await pushChosen(engine, tag, choice, { target, repository, jsons, documents, report, signal });
      }
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

type Tagged = Readonly<{ tag: string; image: Image; target: string | undefined }>;

function selectTags({ images }: Needs, reference: Reference): Tagged[] {
  if (reference.digest !== undefined) throw new EngineError('invalid', 'cannot push a digest reference');
  const { repository, tag: wanted } = reference;
  const all = images.tagsIn(repository);
  const name = familiarName(repository);
  if (all.length === 0) throw new EngineError('failed', `An image does not exist locally with the tag: ${name}`);
  if (wanted === undefined) return all.toSorted((a, b) => (a.tag < b.tag ? -1 : 1));
  const found = all.filter(({ tag }) => tag === wanted);
  if (found.length === 0) throw new EngineError('failed', `tag does not exist: ${familiarReference(reference)}`);
  return found;
}

async function pushChosen(engine: Needs, tag: string, choice: Choice, push: Push): Promise<void> {
  const { repository, report } = push;
  switch (choice.kind) {
    case 'index':
      await pushIndex(engine, choice.document, tag, push);
      return told(tag, descriptorOf(choice.document), push);
    case 'manifest': {
      const { document, image, insteadOf, entry } = choice;
      if (insteadOf !== undefined) {
        const originalIndex = describe(descriptorOf(insteadOf));
        const aux = { manifestPushedInsteadOfIndex: true, originalIndex, selectedManifest: describe(entry) };
        report({ progressDetail: {}, aux });
      }
      if (!(await hasExactLayers(engine, document, image, push))) return await pushImage(engine, tag, image, push);
      await pushManifest(engine, document, image, push);
      await push.target.putManifest(tag, Buffer.from(document.text), document.mediaType, push.signal);
      if (insteadOf === undefined) remember(engine, image, { repository, digest: document.digest });
      return told(tag, descriptorOf(document), push);
    }
    case 'image':
      await pushImage(engine, tag, choice.image, push);
  }
}

/** An image without a manifest, or with one whose layers are here in another form: it gets one of docker's. */
async function pushImage(engine: Needs, tag: string, image: Image, push: Push): Promise<void> {
  const { target, repository, jsons, signal } = push;
  checkArchives(engine, image);
  const pushed = await pushLayers(
    engine,
    image,
    push,
    async (layer, options) => await pushLayer(engine, layer, options),
  );
  const layers = image.diffIds.map((diffId) => pushed.get(diffId)!);
  const bytes = Buffer.from(jsons.get(image.id)!);
  if ((await target.sizeOf(image.id, { signal })) === undefined) await target.put(bytes, image.id, signal);
  const config = { mediaType: DOCKER_CONFIG, size: bytes.length, digest: image.id };
  const manifest = writeManifest(config, layers);
  await target.putManifest(tag, manifest, DOCKER_MANIFEST, signal);
  const digest = sha256(manifest);
  remember(engine, image, { repository, digest });
  told(tag, { digest, size: manifest.length }, push);
}

/** An image that belongs to no index has a name with the digest that it was pushed with. */
function remember({ images }: Needs, image: Image, byDigest: Required<Pick<Reference, 'repository' | 'digest'>>): void {
  if (images.get(image.id) === undefined || images.isInIndex(image.id)) return;
  if (images.named(byDigest)?.id !== image.id) images.refer(byDigest, image.id);
}

function told(tag: string, { digest, size }: { digest: string; size: number }, { report }: Push): void {
  report({ status: `${tag}: digest: ${digest} size: ${size}` });
  report({ progressDetail: {}, aux: { Tag: tag, Digest: digest, Size: size } });
}
