import { applyLayer } from './apply.ts';
import type { Layer } from './records.ts';

type Needs = Parameters<typeof applyLayer>[0];

/** The digest of an archive without entries. */
const EMPTY = 'sha256:5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef';

/**
 * Makes a layer of a container's changes to its image; undefined without changes. Only the writable layer is read. The
 * layer lives as long as `leases`, or longer if it gets an owner.
 *
 * `mountPoints`: the mount points of its runs, which are left out unless the image has them; `none` if it has never
 * run. `signal` ends it in the middle, and then it throws.
 */
export async function commitLayer(
  engine: Needs,
  containerId: string,
  leases: DisposableStack,
  mountPoints: readonly string[] | 'none' = [],
  signal?: AbortSignal,
): Promise<Layer | undefined> {
  const { archives, blobs, layers } = engine;
  const { upper, parent, lower } = layers.changesPlace(containerId);
  await using arrivals = blobs.arrivals();
  const file = `${arrivals.path}/layer`;
  const { digest } = await archives.packLayer(upper, lower, file, mountPoints, signal);
  if (digest === EMPTY) return undefined;
  const layer = await applyLayer(engine, { file, digest, diffId: digest, parent }, leases, undefined, signal);
  await blobs.sync();
  return layer;
}
