import { chmod, mkdir } from 'node:fs/promises';
import { join } from 'node:path';

import { buildFolder } from '../../builder/context/context.ts';
import { imageRoot } from '../../builder/steps/scratch-root.ts';
import type { OpenView } from '../../copies/copies.ts';
import type { Engine } from '../../engine.ts';
import { EngineError } from '../../lib/errors.ts';
import { BytesMessage } from '../messages/session.ts';
import type { Session } from '../session/session.ts';
import type { Tree } from './trees.ts';

export const FILE_SEND = '/moby.filesync.v1.FileSend/DiffCopy';

/** Sends the files of results to the client as one archive. `index`: the place of the output among those of the build. */
export async function exportTar(
  engine: Engine,
  trees: readonly Tree[],
  { session, index, signal }: Readonly<{ session: Session; index: number; signal: AbortSignal }>,
): Promise<void> {
  await using resources = new AsyncDisposableStack();
  const view = await viewOf(engine, trees, resources);
  using exchange = session.exchange(FILE_SEND, BytesMessage, BytesMessage, signal, exporterHeader(index));
  await view.pack(undefined, async (data) => await exchange.send({ data }), signal);
  exchange.end();
  await Array.fromAsync(exchange.responses);
}

/** The one tree, or all of them in their folders. */
async function viewOf(engine: Engine, trees: readonly Tree[], resources: AsyncDisposableStack): Promise<OpenView> {
  const roots: { source: string; folder: string }[] = [];
  for (const { built, folder } of trees)
    roots.push({ source: resources.use(await imageRoot(engine, built.image.id)).path, folder });
  const [first] = roots as [{ source: string; folder: string }];
  if (first.folder === '') {
    if (roots.length > 1)
      throw new EngineError('notImplemented', 'platform-split=false is not implemented for an archive: use type=local');
    return resources.use(await engine.copies.open({ root: first.source, mounts: [], readOnly: 'everything' }));
  }
  const root = resources.use(await buildFolder(engine)).path;
  for (const { folder } of roots) {
    await mkdir(join(root, folder));
    await chmod(join(root, folder), 0o755); // regardless of the umask
  }
  const mounts = roots.map(({ source, folder }) => ({
    source,
    destination: `/${folder}`,
    recursive: false,
    writable: false,
  }));
  return resources.use(await engine.copies.open({ root, mounts, readOnly: 'everything' }));
}

export function exporterHeader(index: number): Record<string, string> {
  return { 'buildkit-attachable-exporter-id': String(index) };
}
