import type { Engine } from '../../engine.ts';
import { applyLayer, makeLayers } from '../../layers/apply.ts';
import { chainIds } from '../../layers/chain-id.ts';
import { Slices } from '../../lib/concurrency/slices.ts';
import { EngineError } from '../../lib/errors.ts';
import { shortId } from '../../lib/ids.ts';
import type { Platform } from '../configuration/platform.ts';
import { emitImageEvent } from '../event.ts';
import { familiarReference } from '../names/reference.ts';
import { progressLine, type Report } from '../progress/progress.ts';
import { ArchiveFiles } from './archive-files.ts';
import { readImages } from './archive-formats.ts';
import type { ArchivedImage } from './archived-image.ts';
import { withKnownParents } from './parents.ts';

/** Names of all images in an archive. */
const MAX_NAMES = 10_000;

type Needs = Pick<Engine, 'images' | 'layers' | 'blobs' | 'archives' | 'locks' | 'clock' | 'events'>;

/**
 * Loads the images of an archive.
 *
 * No image gets a name before all layers of all images exist, so that a bad archive leaves nothing behind, nor does a client
 * that leaves before: `signal` ends the load until then.
 */
export async function loadImages(
  engine: Needs,
  upload: AsyncIterable<Uint8Array>,
  report: Report,
  { platforms = [], signal }: { platforms?: readonly Platform[]; signal?: AbortSignal } = {},
): Promise<void> {
  await using arrivals = engine.blobs.arrivals();
  const files = new ArchiveFiles(await engine.archives.unpack(upload, arrivals.path, signal));
  const images = withKnownParents(await readImages(files, platforms));
  refuseManyNames(images);
  using leases = new DisposableStack();
  for (const image of images) await applyLayers(engine, image, leases, { report, signal });
  await engine.blobs.sync();
  signal?.throwIfAborted();
  const slices = new Slices();
  for (const image of images) await record(engine, image, { report, slices });
  for (const { id, parentId } of images) if (parentId !== undefined) engine.images.setParent(id, parentId);
  for (const { id, names, isPart } of images) {
    // A parent without a name is not reported: it only belongs to its child.
    const isParent = images.some((other) => other.parentId === id);
    if (names.length === 0 && !isParent && isPart !== true) report({ stream: `Loaded image ID: ${id}\n` });
  }
}

async function applyLayers(
  engine: Needs,
  image: ArchivedImage,
  leases: DisposableStack,
  { report, signal }: { report: Report; signal: AbortSignal | undefined },
): Promise<void> {
  const chain = chainIds(image.diffIds);
  await makeLayers(image.layers, async ({ file, digest, sizeBytes }, index, below) => {
    const diffId = image.diffIds[index]!;
    const id = shortId(diffId.slice('sha256:'.length));
    const onProgress = (bytes: number): void => report(progressLine('Loading layer', id, bytes, sizeBytes));
    const arrival = { file, digest, diffId, parent: chain[index - 1], below };
    return await applyLayer(engine, arrival, leases, onProgress, signal);
  });
}

/** Each name is a commit of its own. */
function refuseManyNames(images: readonly ArchivedImage[]): void {
  const count = images.reduce((sum, { names }) => sum + names.length, 0);
  if (count > MAX_NAMES)
    throw new EngineError('invalid', `the images of the archive have more than ${MAX_NAMES} names`);
}

async function record(
  engine: Needs,
  archived: ArchivedImage,
  { report, slices }: { report: Report; slices: Slices },
): Promise<void> {
  const { id, json, names, target, documents = [] } = archived;
  engine.images.insert(id, json, (image) => {
    emitImageEvent(engine, 'load', image);
  });
  for (const name of names) {
    if (slices.isOver) await slices.pause();
    const before = engine.images.named(name);
    if (before !== undefined && before.id !== id) {
      const text = `The image ${familiarReference(name)} already exists, renaming the old one with ID ${before.id} to empty string\n`;
      report({ stream: text });
    }
    engine.images.referWith(documents, name, id, target);
    report({ stream: `Loaded image: ${familiarReference(name)}\n` });
  }
}
