import { mkdirSync, rmdirSync } from 'node:fs';
import { join } from 'node:path';

import { limitProject, setProject } from '../host/files/project-quota.ts';
import { EngineError } from '../lib/errors.ts';
import { newId } from '../lib/ids.ts';

/** Project numbers of ours, far from those in use elsewhere and from each other; the first of each is for a trial. */
export const FIRST_PROJECT = { containers: 0x4700_0000, volumes: 0x6700_0000 } as const;
const PROBE_BYTES = 1 << 20;

/** Limits of the size of folders, by the project quotas of a file system: xfs and ext4, mounted with `prjquota`. */
export class SizeLimits {
  readonly #directory: string;
  readonly #trial: number;
  #last: number;
  #isPossible = false;

  /**
   * `directory` is on the file system in question, for temporary folders; `used` are the projects of existing folders,
   * all of them after `first`.
   */
  constructor(directory: string, first: number, used: Iterable<number>) {
    this.#directory = directory;
    this.#trial = first;
    this.#last = first;
    for (const project of used) this.#last = Math.max(this.#last, project);
  }

  /** Throws `invalid` with this reason if the file system lacks such quotas. */
  check(reason: string): void {
    if (this.#isPossible) return;
    const folder = join(this.#directory, newId());
    mkdirSync(folder);
    try {
      setProject(folder, this.#trial);
      limitProject(folder, this.#trial, PROBE_BYTES);
    } catch (error) {
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
