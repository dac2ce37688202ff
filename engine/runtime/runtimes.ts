import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { basename, delimiter, join } from 'node:path';

import type { Config } from '../config/config.ts';
import { detectCgroups } from '../host/cgroups.ts';
import { EngineError } from '../lib/errors.ts';

/**
 * An OCI runtime, and the folder in which it keeps its containers' state. `hidden` is a mount that it must not see: the
 * crun of Debian 12 refuses hybrid cgroups, but works with version 1 when the additional version 2 is out of its sight.
 */
export type Runtime = Readonly<{ name: string; path: string; root: string; hidden?: string }>;

/** The runtimes that the daemon knows: those of the configuration, and runc and crun where they are installed. */
export class Runtimes {
  readonly defaultName: string;
  readonly #byName = new Map<string, Runtime>();

  constructor(config: Pick<Config, 'runtimes' | 'defaultRuntime' | 'execRoot'>) {
    const root = join(config.execRoot, 'runtime');
    const unified = additionalUnifiedMount();
    const add = (name: string, path: string): void => {
      const hidden = basename(path) === 'crun' ? unified : undefined;
      this.#byName.set(name, { name, path, root, ...(hidden !== undefined && { hidden }) });
    };
    for (const name of ['runc', 'crun']) {
      const path = findProgram(name);
      if (path !== undefined) add(name, path);
    }
    for (const [name, { path }] of Object.entries(config.runtimes)) add(name, findProgram(path) ?? path);
    this.defaultName = config.defaultRuntime === '' ? this.#best() : config.defaultRuntime;
  }

  /** By the name that a container asks for; the default where it names none. */
  get(name = ''): Runtime {
    const wanted = name === '' ? this.defaultName : name;
    const found = this.#byName.get(wanted);
    if (found === undefined) throw new EngineError('invalid', `Unknown runtime specified ${wanted}`);
    return found;
  }

  all(): readonly Runtime[] {
    return [...this.#byName.values()];
  }

  /** crun starts a container in a third of the time. */
  #best(): string {
    if (this.#byName.has('crun')) return 'crun';
    if (this.#byName.has('runc')) return 'runc';
    const [first] = this.#byName.keys();
    if (first === undefined) throw new Error('no OCI runtime is installed: runc or crun is needed');
    return first;
  }
}

/** The first line that the runtime says of its version. */
export function runtimeVersion({ path }: Runtime): string {
  return execFileSync(path, ['--version'], { encoding: 'utf8' }).split('\n')[0] ?? '';
}

function additionalUnifiedMount(): string | undefined {
  const { hybrid, mounts } = detectCgroups();
  return hybrid ? mounts.find((path) => basename(path) === 'unified') : undefined;
}

function findProgram(name: string): string | undefined {
  if (name.includes('/')) return existsSync(name) ? name : undefined;
  const places = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin', '/sbin'];
  return places.map((place) => join(place, name)).find((path) => existsSync(path));
}
