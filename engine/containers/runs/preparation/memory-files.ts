import { chmodSync, chownSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { outsideOf, type IdMap, type IdRange } from '../../../host/users/id-map.ts';
import { EngineError } from '../../../lib/errors.ts';
import type { Container, MountPoint } from '../../store.ts';

/** A file that a container sees, and no disk. */
export type MemoryFile = Readonly<{
  /** Path in the container. */
  target: string;
  uid: number;
  gid: number;
  /** Permission bits. */
  mode: number;
  content: Buffer;
}>;

type Provider = (container: Container) => Promise<readonly MemoryFile[]>;

/** The source of files that containers get at each start, such as the cluster's secrets: nothing is kept here. */
export class MemoryFiles {
  #provider: Provider | undefined;

  /** Sets the provider; undefined outside of a cluster. */
  use(provider: Provider | undefined): void {
    this.#provider = provider;
  }

  /** The files of a container that needs some. Throws `unavailable` without a provider. */
  async of(container: Container): Promise<readonly MemoryFile[]> {
    if (container.needsFiles !== true) return [];
    if (this.#provider === undefined) {
      throw new EngineError('unavailable', 'the secrets and configs of the container are not on this node');
    }
    return await this.#provider(container);
  }
}

/**
 * Makes the folder on which the shim mounts its memory, in the shim's folder; undefined without files. Its empty files
 * are places for the checks of mounts, which this daemon makes in its own namespace.
 */
export function prepareFolder(shimFolder: string, files: readonly MemoryFile[]): string | undefined {
  if (files.length === 0) return undefined;
  const folder = join(shimFolder, 'files');
  mkdirSync(folder, { mode: 0o700 });
  for (const at of files.keys()) writeFileSync(join(folder, String(at)), '');
  return folder;
}

/** Writes the files into the memory that the shim has mounted, and returns their mounts in the container. */
export function writeFiles(
  shimPid: number,
  folder: string | undefined,
  files: readonly MemoryFile[],
  idMap: IdMap | undefined,
): MountPoint[] {
  if (folder === undefined) return [];
  return files.map(({ target, uid, gid, mode, content }, at) => {
    const path = `/proc/${shimPid}/root${folder}/${at}`;
    writeFileSync(path, content, { mode: 0o600, flag: 'wx' }); // a place of the host's file system exists already
    chownSync(path, outside(idMap?.uids, uid), outside(idMap?.gids, gid));
    chmodSync(path, mode);
    return fileMount(join(folder, String(at)), target);
  });
}

function outside(ranges: readonly IdRange[] | undefined, id: number): number {
  const found = ranges === undefined ? id : outsideOf(ranges, id);
  if (found === undefined) throw new EngineError('failed', `the owner ${id} of a file is beyond the map of users`);
  return found;
}

function fileMount(source: string, destination: string): MountPoint {
  return {
    ...{ type: 'bind', source, destination, mode: '', writable: false, propagation: 'rprivate' },
    ...{ copyUp: false, anonymous: false },
  };
}
