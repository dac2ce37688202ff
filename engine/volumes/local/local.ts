/* oxlint-disable require-await -- drivers may wait; this one waits only for mounts */
import { existsSync, readdirSync, rmdirSync } from 'node:fs';
import { join } from 'node:path';

import { projectOf } from '../../host/files/project-quota.ts';
import { hasCode, refuseIf } from '../../lib/errors.ts';
import { makeFolders } from '../../lib/folders.ts';
import { FIRST_PROJECT, SizeLimits } from '../../trees/size-limits.ts';
import { Trash } from '../../trees/trash.ts';
import type { UsersOf, VolumeDriver, VolumeFacts, VolumeOptions } from '../driver.ts';
import type { Volume } from '../store.ts';
import { LocalMounts } from './mounts.ts';
import { checkOptions, mountRequest, sizeOf } from './options.ts';

type FailureLog = { warn(details: object, message: string): void; error(details: object, message: string): void };

/** The kernel's limit for a name in a folder. */
const MAX_NAME_LENGTH = 255;
const NAME = /^[a-zA-Z0-9][a-zA-Z0-9_.-]+$/;

/** No volume has such a name. */
const TRASH = '.trash';

/** The names of folders of volumes that an earlier version was removing. */
const OLD_TRASH = '.trash-';

/**
 * Folders below `<data-root>/volumes`, with the mount on them or the limit of their size that a volume's options ask for;
 * those of removed volumes disappear in the background.
 */
export class LocalVolumes implements VolumeDriver, AsyncDisposable {
  readonly name = 'local';
  readonly scope = 'local';
  readonly #directory: string;
  readonly #trash: Trash;
  readonly #mounts: LocalMounts;
  #limits: SizeLimits | undefined;
  readonly #log: FailureLog;

  constructor(dataRoot: string, log: FailureLog) {
    this.#directory = join(dataRoot, 'volumes');
    this.#log = log;
    this.#trash = new Trash(join(this.#directory, TRASH), (error, path) =>
      log.warn({ err: error, path }, 'the files of a removed volume are still there; the next start tries again'),
    );
    this.#mounts = new LocalMounts(this.#directory);
  }

  check(name: string, options: VolumeOptions): void {
    refuseIf(name.length === 1, 'volume name is too short, names should be at least two alphanumeric characters');
    refuseIf(
      name !== '' && !NAME.test(name),
      `"${name}" includes invalid characters for a local volume name, only "[a-zA-Z0-9][a-zA-Z0-9_.-]" are allowed. If you intended to pass a host directory, use absolute path`,
    );
    refuseIf(name.length > MAX_NAME_LENGTH, `a volume name of ${name.length} bytes: ${MAX_NAME_LENGTH} is the limit`);
    checkOptions(options);
    if (sizeOf(options) > 0) this.#sizeLimits().check('quota size requested but no quota support');
  }

  async create({ name, options = {} }: Volume): Promise<void> {
    const folder = this.#folderOf(name);
    makeFolders(folder, 0o755); // containers of any user may enter it
    const bytes = sizeOf(options);
    if (bytes > 0 && !hasLimit(folder)) this.#sizeLimits().plan(bytes).put(folder);
  }

  async remove({ name, options }: Volume, forget: () => void): Promise<boolean> {
    if (this.needsMount({ options })) await this.#mounts.drop(name);
    const folder = this.#folderOf(name);
    const project = sizeOf(options ?? {}) > 0 && existsSync(folder) ? projectOf(folder) : 0;
    this.#trash.take(join(this.#directory, name), forget);
    if (project > FIRST_PROJECT.volumes) this.#sizeLimits().forget(project);
    return true;
  }

  needsMount({ options = {} }: Pick<Volume, 'options'>): boolean {
    return mountRequest(options) !== undefined;
  }

  async mount({ name, options = {} }: Volume, user: string): Promise<string> {
    const request = mountRequest(options);
    if (request !== undefined) await this.#mounts.hold(name, request, user);
    return this.#folderOf(name);
  }

  async unmount({ name, options }: Volume, user: string): Promise<void> {
    if (this.needsMount({ options })) await this.#mounts.leave(name, user);
  }

  async look({ name }: Volume): Promise<VolumeFacts> {
    return { path: this.#folderOf(name) };
  }

  /**
   * Finishes removals, makes missing folders, and unmounts volumes without users. A folder with files but without a
   * record stays: it may be the last copy of a user's data.
   */
  async reconcile(volumes: readonly Volume[], isKnown: (name: string) => boolean, usersOf: UsersOf): Promise<void> {
    for (const name of readdirSync(this.#directory)) {
      if (name === TRASH || isKnown(name)) continue;
      try {
        if (name.startsWith(OLD_TRASH)) this.#trash.take(join(this.#directory, name));
        else removeIfEmpty(join(this.#directory, name));
      } catch (error) {
        this.#log.error({ err: error, volume: name }, 'the folder of an unknown volume stays');
      }
    }
    for (const volume of volumes) {
      try {
        if (this.needsMount(volume)) await this.#mounts.adopt(volume.name, usersOf(volume.name));
        await this.create(volume);
      } catch (error) {
        const message = 'a volume has no folder: containers with it will not start';
        this.#log.error({ err: error, volume: volume.name }, message);
      }
    }
  }

  /** Made when the first volume with a size is seen: it looks at all others. */
  #sizeLimits(): SizeLimits {
    if (this.#limits === undefined) {
      const folders = readdirSync(this.#directory).map((name) => this.#folderOf(name));
      const used = folders.filter((folder) => existsSync(folder)).map(projectOf);
      const ours = used.filter((project) => project > FIRST_PROJECT.volumes);
      this.#limits = new SizeLimits(join(this.#directory, TRASH), FIRST_PROJECT.volumes, ours);
    }
    return this.#limits;
  }

  #folderOf(name: string): string {
    return join(this.#directory, name, '_data');
  }

  /** Stops removals in the background; the next start continues them. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#trash[Symbol.asyncDispose]();
  }
}

function hasLimit(folder: string): boolean {
  return projectOf(folder) > FIRST_PROJECT.volumes;
}

/** An interrupted create leaves empty folders. */
function removeIfEmpty(folder: string): void {
  for (const path of [join(folder, '_data'), folder]) {
    try {
      rmdirSync(path);
    } catch (error) {
      if (!hasCode(error, 'ENOENT') && !hasCode(error, 'ENOTEMPTY') && !hasCode(error, 'ENOTDIR')) throw error;
    }
  }
}
