import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';

import type { Config } from '../config/config.ts';
import { EngineError } from '../lib/errors.ts';

/** An OCI runtime, and the folder in which it keeps its containers' state. */
export type Runtime = Readonly<{ name: string; path: string; root: string }>;

/** The runtimes that the daemon knows: those of the configuration, and runc and crun where they are installed. */
export class Runtimes {
  readonly defaultName: string;
  readonly #byName = new Map<string, Runtime>();

  constructor(config: Pick<Config, 'runtimes' | 'defaultRuntime' | 'execRoot'>) {
    const root = join(config.execRoot, 'runtime');
    for (const name of ['runc', 'crun']) {
      const path = findProgram(name);
      if (path !== undefined) this.#byName.set(name, { name, path, root });
    }
    for (const [name, { path }] of Object.entries(config.runtimes)) {
      this.#byName.set(name, { name, path: findProgram(path) ?? path, root });
    }
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

  /** crun is quicker, but the versions of Debian 12 refuse a host with hybrid cgroups: only a pure v2 host gets it. */
  #best(): string {
    if (this.#byName.has('crun') && existsSync('/sys/fs/cgroup/cgroup.controllers')) return 'crun';
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

function findProgram(name: string): string | undefined {
  if (name.includes('/')) return existsSync(name) ? name : undefined;
  const places = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin', '/sbin'];
  return places.map((place) => join(place, name)).find((path) => existsSync(path));
}
