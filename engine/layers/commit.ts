import { applyLayer, EMPTY, moveLayer } from './apply.ts';
import type { Layer } from './records.ts';

type Needs = Parameters<typeof applyLayer>[0];

/**
 * Makes a layer of a container's changes to its image; undefined without changes. Only the writable layer is read. The
 * layer lives as long as `leases`, or longer if it gets an owner.
 *
 * `mountPoints`: the mount points of its runs, which are left out unless the image has them; `none` if it has never
 * run and is not needed any more: then its folder is moved. `signal` ends it in the middle, and then it throws.
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
  if (mountPoints === 'none') {
    const moved = await moveLayer(engine, { upper, parent }, leases, signal);
    if (moved === 'empty') return undefined;
    if (moved !== undefined) {
      await blobs.sync();
      return moved;
    }
  }
  await using arrivals = blobs.arrivals();
  const file = `${arrivals.path}/layer`;
  const { digest } = await archives.packLayer(upper, lower, file, mountPoints, signal);
  if (digest === EMPTY) return undefined;
  const layer = await applyLayer(engine, { file, digest, diffId: digest, parent }, leases, undefined, signal);
  await blobs.sync();
  return layer;
}
