import { open } from 'node:fs/promises';
import { dirname, join } from 'node:path';

import type { Engine } from '../engine.ts';
import { EngineError } from '../lib/errors.ts';
import { newId } from '../lib/ids.ts';
import { chainOn } from './chain-id.ts';
import type { Layers } from './layers.ts';
import type { Layer } from './records.ts';
import { compressionOf } from './threads/compression.ts';

type Needs = Pick<Engine, 'layers' | 'blobs' | 'archives' | 'locks'>;

type Arrival = {
  /** The archive as received, in a folder of arrivals, and its digest. */
  file: string;
  digest: string;
  /** The digest that the image states; undefined if it states none. */
  diffId?: string;
  /** Chain id of the layer below. */
  parent: string | undefined;
  /** Resolves when that layer is there, which is needed only at the end. */
  below?: Promise<unknown> | undefined;
};

/** The digest of an archive without entries. */
export const EMPTY = 'sha256:5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef';

/** More would need more memory, and threads. */
const AT_ONCE = 2;

/**
 * Makes the layers of an image, base first, two at the same time: `make` gets the layer below as it is being made. Waits for all,
 * also when one fails; throws the failure of the lowest.
 */
export async function makeLayers<Item>(
  items: readonly Item[],
  make: (item: Item, index: number, below: Promise<Layer> | undefined) => Promise<Layer>,
): Promise<Layer[]> {
  const layers: Promise<Layer>[] = [];
  const inTurn = async (item: Item, index: number): Promise<Layer> => {
    await layers[index - AT_ONCE];
    return await make(item, index, layers[index - 1]);
  };
  for (const [index, item] of items.entries()) layers.push(inTurn(item, index));
  await Promise.allSettled(layers);
  return await Promise.all(layers);
}

/**
 * Turns a received archive into a layer on top of another, or finds the existing layer. A layer that has lost its files
 * gets them back.
 *
 * The layer lives as long as `leases`, or longer if it gets an owner. `signal` ends the extraction, and then it throws.
 */
export async function applyLayer(
  engine: Needs,
  { file, digest, diffId, parent, below }: Arrival,
  leases: DisposableStack,
  onProgress?: (bytes: number) => void,
  signal?: AbortSignal,
): Promise<Layer> {
  // Two loads of one image must not extract the same layer twice.
  using _lock = await engine.locks.hold(`layer ${parent ?? ''} ${diffId ?? digest}`);
  const known = diffId === undefined ? undefined : leased(engine.layers, chainOn(parent, diffId), leases);
  if (known !== undefined && isComplete(engine, known)) return known;

  using workspace = engine.layers.folders.workspace();
  await using archive = await open(file, 'r');
  const lower = async (): Promise<string[]> => {
    await below;
    return engine.layers.chain(parent).map((layer) => engine.layers.folders.pathOf(layer));
  };
  const skeleton = join(dirname(file), `skeleton-${newId()}`);
  const isPlain = (await compressionOf(file)) === 'none';
  const [{ hasSkeleton, ...extracted }] = await both(
    engine.archives.extract(
      { fd: archive.fd, digest },
      { target: workspace.path, lower, skeleton },
      onProgress,
      signal,
    ),
    isPlain ? Promise.resolve() : archive.sync(), // the disk syncs while the thread extracts
  );
  if (isPlain && !hasSkeleton) await archive.sync();
  if (diffId !== undefined && extracted.diffId !== diffId) {
    throw new EngineError('invalid', `a layer has the digest ${extracted.diffId}, but its image states ${diffId}`);
  }
  await below;
  const chainId = chainOn(parent, extracted.diffId);
  const twin = leased(engine.layers, chainId, leases);
  if (twin !== undefined && isComplete(engine, twin)) return twin;

  const layer =
    twin === undefined
      ? engine.layers.register(workspace.path, { chainId, parent, blob: digest, ...extracted })
      : engine.layers.restore(workspace.path, twin, digest);
  // Last, because a blob without a record would be set aside after a crash.
  if (hasSkeleton) engine.blobs.adopt(skeleton, digest, 'skeleton');
  else engine.blobs.adopt(file, digest, 'whole');
  return layer;
}

/**
 * Turns the changes of a writable layer without runs into a layer by moving its folder. Undefined where they have to be packed
 * and extracted; `empty` without changes. The folder must not be mounted.
 */
export async function moveLayer(
  engine: Needs,
  { upper, parent }: Readonly<{ upper: string; parent: string | undefined }>,
  leases: DisposableStack,
  signal?: AbortSignal,
): Promise<Layer | 'empty' | undefined> {
  await using arrivals = engine.blobs.arrivals();
  const skeleton = join(arrivals.path, 'skeleton');
  const { hasSkeleton, ...described } = await engine.archives.describeLayer(upper, skeleton, signal);
  const { diffId } = described;
  if (diffId === EMPTY) return 'empty';
  if (!hasSkeleton) return undefined;
  using _lock = await engine.locks.hold(`layer ${parent ?? ''} ${diffId}`);
  const chainId = chainOn(parent, diffId);
  const twin = leased(engine.layers, chainId, leases);
  if (twin !== undefined && isComplete(engine, twin)) return twin;
  const layer =
    twin === undefined
      ? engine.layers.register(upper, { chainId, parent, blob: diffId, ...described })
      : engine.layers.restore(upper, twin, diffId);
  engine.blobs.adopt(skeleton, diffId, 'skeleton'); // last, as above
  return layer;
}

/** Whether both parts of a layer exist: its files, and their archive. */
function isComplete({ layers, blobs }: Pick<Needs, 'layers' | 'blobs'>, layer: Layer): boolean {
  return layers.folders.isWhole(layer) && blobs.has(layer.blob);
}

/** The layer with this chain id, if it exists; a lease keeps it in any case. */
function leased(layers: Layers, chainId: string, leases: DisposableStack): Layer | undefined {
  leases.use(layers.lease(chainId));
  return layers.get(chainId);
}

/** Waits for both even when one fails, because they use the same file. */
async function both<A, B>(first: Promise<A>, second: Promise<B>): Promise<[A, B]> {
  await Promise.allSettled([first, second]);
  return [await first, await second];
}
