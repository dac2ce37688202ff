import { execFile } from 'node:child_process';
import { existsSync, linkSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

import type { Engine } from '../../engine.ts';
import { mountOverlay, unmount } from '../../host/mounts/mount.ts';
import type { Report } from '../../images/progress/progress.ts';
import type { DownloadEvent } from '../../images/transfers/layers/layer-downloads.ts';
import { LayerLines } from '../../images/transfers/transfer-lines.ts';
import { shortId } from '../../lib/ids.ts';
import type { Descriptor } from '../../registry/manifests.ts';
import type { Repository } from '../../registry/repository.ts';
import { layerFile } from '../places.ts';
import type { Arrival } from './arrival.ts';

export type UnpackNeeds = Pick<Engine, 'archives' | 'blobs' | 'clock' | 'layerDownloads'>;

const execute = promisify(execFile);

/**
 * Downloads the layers of a plugin, base first, keeps them for a push, and makes one plain tree of them.
 */
export async function unpackRoot(
  engine: UnpackNeeds,
  repository: Repository,
  layers: readonly Descriptor[],
  { arrival, report, signal }: { arrival: Arrival; report: Report; signal: AbortSignal },
): Promise<void> {
  const { folder, plugin, root } = arrival;
  const folders: string[] = [];
  const over = new AbortController();
  const downloads = layers.map(
    async (descriptor) =>
      await engine.layerDownloads.get(engine, repository, descriptor, {
        signal: AbortSignal.any([signal, over.signal]),
        listener: listen(engine, descriptor, report),
      }),
  );
  const settled = Promise.allSettled(downloads);
  await using _downloads = {
    async [Symbol.asyncDispose]() {
      over.abort(new Error('another layer of the plugin failed'));
      for (const one of await settled) if (one.status === 'fulfilled') await one.value[Symbol.asyncDispose]();
    },
  };
  for (const [index, { digest }] of layers.entries()) {
    const { file } = await downloads[index]!;
    if (!existsSync(layerFile(plugin, digest))) linkSync(file, layerFile(plugin, digest));
    const target = join(folder, String(index));
    mkdirSync(target, { mode: 0o755 });
    await using archive = await open(file, 'r');
    const skeleton = join(folder, 'skeleton');
    const lower = async (): Promise<string[]> => await Promise.resolve(folders.toReversed());
    // The digest of the plain archive is not compared: `docker plugin create` states that of a part of it.
    await engine.archives.extract({ fd: archive.fd, digest }, { target, lower, skeleton }, undefined, signal);
    rmSync(skeleton, { force: true });
    signal.throwIfAborted();
    folders.push(target);
  }
  if (folders.length === 1) renameSync(folders[0]!, root);
  else await copyMerged(folders, root, join(folder, 'merged'));
}

function listen({ clock }: UnpackNeeds, { digest, size }: Descriptor, report: Report): (event: DownloadEvent) => void {
  const lines = new LayerLines(report, clock, shortId(digest.slice('sha256:'.length)), size);
  return (event) => lines.download(event);
}

/** The view of overlayfs, which applies the removals of each layer. */
async function copyMerged(folders: readonly string[], root: string, view: string): Promise<void> {
  mkdirSync(root, { mode: 0o755 });
  if (folders.length === 0) return;
  mkdirSync(view);
  mountOverlay({ target: view, lower: folders.toReversed() });
  try {
    await execute('cp', ['-a', '--', `${view}/.`, root]);
  } finally {
    unmount(view, { lazy: true });
  }
}
