import type { Events } from '../../events/events.ts';
import { resolveUser } from '../../oci/user.ts';
import { emitIfThere } from '../container-events.ts';
import { openFiles, type FilesNeeds } from './files.ts';
import { explainPathError, refuseEmptyPath } from './read.ts';

type How = Readonly<{
  /** Nothing but a folder may replace a folder, and no folder anything else. */
  keepsKinds: boolean;
  /** Everything gets the user of the container as its owner. */
  toUser: boolean;
  /** Aborted when the client has left. */
  signal: AbortSignal;
}>;

/**
 * Puts the files of an archive, compressed or not, into a folder of a container.
 *
 * Throws `invalid` for a path that is not a folder and for a bad archive, `notFound`, and `forbidden` for a read-only
 * part of the container. Files written before an error, or before the client has left, stay. Specification, endpoint 24.
 */
export async function putArchive(
  engine: FilesNeeds & { events: Events },
  ref: string,
  path: string,
  archive: AsyncIterable<Uint8Array>,
  { keepsKinds, toUser, signal }: How,
): Promise<void> {
  refuseEmptyPath(path);
  const { hostConfig } = engine.containers.find(ref);
  const readOnly = hostConfig.ReadonlyRootfs ? 'root' : 'nothing';
  await using files = await openFiles(engine, ref, { readOnly, withMounts: true });
  const { container, view, removed, root } = files;
  const { User: user } = container.config;
  const owner =
    toUser && user !== '' ? await resolveUser({ user, groupAdd: [] }, root, { needsHome: false }) : undefined;
  try {
    const options = { path, keepsKinds, ...(owner !== undefined && { owner: { uid: owner.uid, gid: owner.gid } }) };
    await view.place(options, archive, AbortSignal.any([removed, signal]));
  } catch (error) {
    removed.throwIfAborted();
    throw explainPathError(error, `container ${ref}`, path);
  } finally {
    engine.runs.of(container.id).writes += 1;
  }
  emitIfThere(engine, 'extract-to-dir', container.id);
}
