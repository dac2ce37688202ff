import type { Bringing } from '../../builder/cache/imported-steps.ts';
import type { Engine } from '../../engine.ts';
import { LayerLines } from '../../images/transfers/transfer-lines.ts';
import { applyLayer } from '../../layers/apply.ts';
import { chainOn } from '../../layers/chain-id.ts';
import type { Layer } from '../../layers/records.ts';
import { EngineError } from '../../lib/errors.ts';
import { shortId } from '../../lib/ids.ts';
import type { Repository } from '../../registry/repository.ts';
import type { ClientContent } from '../session/client-content.ts';
import type { CachedLayer } from './read-manifest.ts';

type Needs = Pick<Engine, 'archives' | 'blobs' | 'clock' | 'layerDownloads' | 'layers' | 'locks'>;

/** The place of a cache's blobs. */
export type Origin = Readonly<{ repository: Repository } | { content: ClientContent }>;

/** Brings a layer of a cache here, checked, unless it is here already. Without an origin it must be here. */
export async function bringLayer(
  engine: Needs,
  origin: Origin | undefined,
  { descriptor, diffId }: CachedLayer,
  { parent, leases, report, signal }: Bringing,
): Promise<Layer> {
  const chainId = chainOn(parent, diffId);
  leases.use(engine.layers.lease(chainId));
  const known = engine.layers.get(chainId);
  if (known !== undefined && engine.layers.folders.isWhole(known) && engine.blobs.has(known.blob)) return known;
  const { digest, size } = descriptor;
  if (origin === undefined) throw new EngineError('failed', `the layer ${diffId} is on top of another one here`);
  const lines = new LayerLines(report, engine.clock, shortId(digest.replace('sha256:', '')), size);
  await using downloaded = await fetch(engine, origin, descriptor, { lines, signal });
  const arrival = { file: downloaded.file, digest, diffId, parent };
  const layer = await applyLayer(engine, arrival, leases, (bytes) => lines.bytes('Extracting', bytes), signal);
  await engine.blobs.sync();
  lines.say('Pull complete');
  return layer;
}

async function fetch(
  engine: Needs,
  origin: Origin,
  descriptor: CachedLayer['descriptor'],
  { lines, signal }: Readonly<{ lines: LayerLines; signal: AbortSignal }>,
): Promise<AsyncDisposable & { file: string }> {
  if ('repository' in origin) {
    const listener = lines.download.bind(lines);
    return await engine.layerDownloads.get(engine, origin.repository, descriptor, { signal, listener });
  }
  await using undo = new AsyncDisposableStack();
  const { path } = undo.use(engine.blobs.arrivals());
  const file = `${path}/layer`;
  const received = await engine.archives.receive(origin.content.read(descriptor), file, signal);
  if (received.digest !== descriptor.digest || received.sizeBytes !== descriptor.size)
    throw new EngineError('failed', `filesystem layer verification failed for digest ${descriptor.digest}`);
  const held = undo.move();
  return { file, [Symbol.asyncDispose]: async () => await held.disposeAsync() };
}
