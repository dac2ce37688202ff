import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { basename, delimiter, join } from 'node:path';

import type { Config, RuntimeConfig } from '../config/daemon-config.ts';
import { detectCgroups } from '../host/cgroups/cgroups.ts';
import { isRootless } from '../host/rootless.ts';
import { EngineError } from '../lib/errors.ts';

/**
 * An OCI runtime, and the folder in which it keeps its containers' state. `hidden` is a mount that it must not see: the
 * crun of Debian 12 refuses hybrid cgroups, but works with version 1 when the additional version 2 is out of its sight.
 */
export type Runtime = Readonly<{
  name: string;
  /** The path to execute: the program, or a script that passes it arguments. */
  path: string;
  root: string;
  hidden?: string;
  /** The settings of this runtime. */
  settings: RuntimeConfig;
}>;

type Settings = Pick<Config, 'runtimes' | 'defaultRuntime' | 'execRoot'>;

/** The known runtimes: those of the configuration, and runc and crun if installed. */
export class Runtimes {
  #byName: ReadonlyMap<string, Runtime> = new Map();
  #defaultName = '';

  constructor(settings: Settings) {
    this.use(settings);
  }

  get defaultName(): string {
    return this.#defaultName;
  }

  /** Applies new settings; when it throws, none of them. */
  use({ runtimes, defaultRuntime, execRoot }: Settings): void {
    const unified = additionalUnifiedMount();
    const known = new Map<string, Runtime>();
    const add = (name: string, wanted: RuntimeConfig): void => {
      const program = findProgram(wanted.path) ?? wanted.path;
      const settings = { ...wanted, path: program };
      const hidden = basename(program) === 'crun' && unified !== undefined ? { hidden: unified } : {};
      // Without a cgroup of its own crun asks systemd, or stops.
      const isBare = isRootless && basename(program) === 'crun';
      const runtimeArgs = [...(isBare ? ['--cgroup-manager=disabled'] : []), ...settings.runtimeArgs];
      const path = runtimeArgs.length === 0 ? program : script(execRoot, name, { ...settings, runtimeArgs });
      known.set(name, { name, path, root: join(execRoot, 'runtime'), ...hidden, settings });
    };
    for (const name of ['runc', 'crun']) {
      if (findProgram(name) !== undefined) add(name, { path: name, runtimeArgs: [] });
    }
    for (const [name, settings] of Object.entries(runtimes)) add(name, settings);
    this.#defaultName = defaultRuntime === '' ? bestOf(known) : defaultRuntime;
    this.#byName = known;
  }

  /** The runtime of this name, or the default. */
  get(name = ''): Runtime {
    const wanted = name === '' ? this.defaultName : name;
    const found = this.#byName.get(wanted);
    if (found === undefined) throw new EngineError('invalid', `Unknown runtime specified ${wanted}`);
    return found;
  }

  /** The runtime that removes a container's remains: its own, or any other if that is no longer configured. */
  toRemove(name: string | undefined): Runtime {
    return this.#byName.get(name === undefined || name === '' ? this.defaultName : name) ?? this.get();
  }

  all(): readonly Runtime[] {
    return [...this.#byName.values()];
  }
}

/** crun starts a container in a third of the time. */
function bestOf(known: ReadonlyMap<string, Runtime>): string {
  if (known.has('crun')) return 'crun';
  if (known.has('runc')) return 'runc';
  const [first] = known.keys();
  if (first === undefined) throw new Error('no OCI runtime is installed: install runc or crun');
  return first;
}

/** A script for a runtime with configured arguments, which precede those of each call. */
function script(execRoot: string, name: string, { path, runtimeArgs }: RuntimeConfig): string {
  const folder = join(execRoot, 'runtimes');
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const file = join(folder, encodeURIComponent(name));
  const words = [path, ...runtimeArgs].map((word) => `'${word.replaceAll("'", String.raw`'\''`)}'`);
  writeFileSync(file, `#!/bin/sh\nexec ${words.join(' ')} "$@"\n`, { mode: 0o700 });
  return file;
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
