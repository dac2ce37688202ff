import { mkdirSync, rmdirSync } from 'node:fs';
import { join } from 'node:path';

import { limitProject, setProject } from '../host/files/project-quota.ts';
import { EngineError } from '../lib/errors.ts';
import { newId } from '../lib/ids.ts';

/** The first project number of ours, far from those in use elsewhere; the number before it is for a trial. */
const FIRST_PROJECT = 0x4700_0000;
const PROBE_BYTES = 1 << 20;

/** Limits of the size of folders, by the project quotas of a file system: xfs and ext4, mounted with `prjquota`. */
export class SizeLimits {
  readonly #directory: string;
  #last: number;
  #isPossible = false;

  /**
   * `directory` is on the file system in question, for temporary folders; `used` are the projects of existing folders.
   */
  constructor(directory: string, used: Iterable<number>) {
    this.#directory = directory;
    this.#last = Math.max(FIRST_PROJECT, ...used);
  }

  /** Throws `invalid` if the file system lacks such quotas. */
  check(): void {
    if (this.#isPossible) return;
    const folder = join(this.#directory, newId());
    mkdirSync(folder);
    try {
      setProject(folder, FIRST_PROJECT);
      limitProject(folder, FIRST_PROJECT, PROBE_BYTES);
    } catch (error) {
      const reason =
        "--storage-opt is supported only for overlay over xfs with 'pquota' mount option, or ext4 with 'prjquota'";
      throw new EngineError('invalid', reason, { cause: error });
    } finally {
      rmdirSync(folder);
    }
    this.#isPossible = true;
  }

  /** A project of its own for an empty folder; `put` applies the limit to all its future content. */
  plan(bytes: number): { project: number; put: (folder: string) => void } {
    this.#last += 1;
    const project = this.#last;
    return {
      project,
      put: (folder) => {
        setProject(folder, project);
        limitProject(folder, project, bytes);
      },
    };
  }

  /** The kernel keeps a limit whether or not there are files. */
  forget(project: number): void {
    limitProject(this.#directory, project, 0);
  }
}
