import type { Engine } from '../../engine.ts';
import type { Layers } from '../../layers/layers.ts';
import { folderBelow } from '../../layers/tar/lower-folders.ts';
import type { Container } from '../store.ts';

type Needs = Pick<Engine, 'copies' | 'layers'>;

/**
 * Creates a missing working directory, as docker does when a container is created, so that files can be copied into it.
 * Throws `invalid` for a file in its place.
 */
export async function makeWorkingDirectory({ copies, layers }: Needs, { id, config }: Container): Promise<void> {
  const path = config.WorkingDir;
  if (path === '' || path === '/' || isInImage(layers, id, path)) return;
  await using root = await layers.mountOnHost(id);
  await using view = await copies.open({ root: root.path, mounts: [], readOnly: 'nothing' });
  await view.makeFolder(path);
}

/** Whether an image has a folder there, which spares a mount. Nothing is said of paths through links. */
function isInImage(layers: Layers, id: string, path: string): boolean {
  return folderBelow(layers.changesPlace(id).lower, Buffer.from(path.slice(1)).toString('latin1')) !== undefined;
}
