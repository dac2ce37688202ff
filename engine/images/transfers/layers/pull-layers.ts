import { link } from 'node:fs/promises';
import { join } from 'node:path';

import type { Engine } from '../../../engine.ts';
import { applyLayer, makeLayers } from '../../../layers/apply.ts';
import { chainIds, chainOn } from '../../../layers/chain-id.ts';
import type { Layer } from '../../../layers/records.ts';
import { hasCode } from '../../../lib/errors.ts';
import { shortId } from '../../../lib/ids.ts';
import type { Descriptor } from '../../../registry/manifests.ts';
import type { Repository } from '../../../registry/repository.ts';
import type { Report } from '../../progress/progress.ts';
import { LayerLines } from '../transfer-lines.ts';
import type { Downloaded } from './layer-downloads.ts';

type Needs = Pick<Engine, 'archives' | 'blobs' | 'clock' | 'layerDownloads' | 'layerSources' | 'layers' | 'locks'>;

type Wanted = {
  descriptors: readonly Descriptor[];
  /** Unknown where the manifest has none; then they are found out. */
  diffIds: readonly string[] | undefined;
};
type Job = { descriptor: Descriptor; diffId: string | undefined; index: number; lines: LayerLines };

/**
 * Brings the layers of an image, base first, and returns them; those that are here stay. Two are unpacked while later ones
 * still arrive. They live as long as `leases`, or longer if they get an owner.
 */
export async function pullLayers(
  engine: Needs,
  repository: Repository,
  { descriptors, diffIds }: Wanted,
  { leases, report, signal }: { leases: DisposableStack; report: Report; signal: AbortSignal },
): Promise<Layer[]> {
  const jobs = descriptors.map((descriptor, index): Job => {
    const lines = new LayerLines(
      report,
      engine.clock,
      shortId(descriptor.digest.slice('sha256:'.length)),
      descriptor.size,
    );
    return { descriptor, diffId: diffIds?.[index], index, lines };
  });
  const layers = presentLayers(engine, jobs, leases);
  const chain = diffIds && chainIds(diffIds);
  const missing = jobs.slice(layers.length);
  for (const job of jobs) job.lines.say(missing.includes(job) ? 'Pulling fs layer' : 'Already exists');
  await using arrivals = engine.blobs.arrivals();
  const stop = new AbortController();
  const either = AbortSignal.any([signal, stop.signal]);
  const downloads = missing.map((job) => begin(engine, repository, job, arrivals.path, either));
  for (const download of downloads) download.catch((error: unknown) => stop.abort(error)); // the first one ends the others
  try {
    const made = await makeLayers(missing, async (job, index, below) => {
      try {
        await using downloaded = await downloads[index]!;
        either.throwIfAborted();
        // Where the manifest tells no digests, the layer below has to be made first.
        const parent =
          job.index === 0 ? undefined : (chain?.[job.index - 1] ?? ((await below) ?? layers.at(-1))?.chainId);
        return await unpack(engine, job, { parent, below, downloaded, leases, signal: either });
      } catch (error) {
        stop.abort(error);
        throw error;
      }
    });
    return [...layers, ...made];
  } catch {
    throw signal.aborted ? signal.reason : (stop.signal.reason as unknown);
  } finally {
    for (const { status, value } of (await Promise.allSettled(downloads)) as { status: string; value?: Downloaded }[]) {
      if (status === 'fulfilled') await value![Symbol.asyncDispose]();
    }
  }
}

/** Those from the base up that are here, leased. */
function presentLayers({ blobs, layers }: Needs, jobs: readonly Job[], leases: DisposableStack): Layer[] {
  const present: Layer[] = [];
  for (const { descriptor, diffId } of jobs) {
    const parent = present.at(-1)?.chainId;
    const layer =
      diffId === undefined
        ? layers.all().find((each) => each.parent === parent && each.blob === descriptor.digest)
        : layers.get(chainOn(parent, diffId));
    if (layer === undefined || !layers.folders.isWhole(layer) || !blobs.has(layer.blob)) break;
    leases.use(layers.lease(layer.chainId));
    present.push(layer);
  }
  return present;
}

/** A blob of another chain of layers is not downloaded again. */
async function begin(
  engine: Needs,
  repository: Repository,
  { descriptor, index, lines }: Job,
  folder: string,
  signal: AbortSignal,
): Promise<Downloaded> {
  const copy = join(folder, `blob-${index}`);
  if (await linked(engine.blobs.path(descriptor.digest), copy)) {
    lines.say('Download complete');
    return { file: copy, [Symbol.asyncDispose]: async () => await Promise.resolve() };
  }
  const listener = lines.download.bind(lines);
  return await engine.layerDownloads.get(engine, repository, descriptor, { signal, listener });
}

async function linked(from: string, to: string): Promise<boolean> {
  try {
    await link(from, to);
    return true;
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return false;
    throw error;
  }
}

type Place = {
  parent: string | undefined;
  below: Promise<Layer> | undefined;
  downloaded: Downloaded;
  leases: DisposableStack;
  signal: AbortSignal;
};

async function unpack(
  engine: Needs,
  { descriptor, diffId, lines }: Job,
  { parent, below, downloaded, leases, signal }: Place,
): Promise<Layer> {
  const { file } = downloaded;
  const { digest } = descriptor;
  const layer = await applyLayer(
    engine,
    { file, digest, ...(diffId !== undefined && { diffId }), parent, below },
    leases,
    (bytes) => lines.bytes('Extracting', bytes),
    signal,
  );
  lines.say('Pull complete');
  return layer;
}
