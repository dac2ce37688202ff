import { join } from 'node:path';

/** The path of gantry-shim; tests choose another build by the environment. */
export const SHIM_PROGRAM = process.env.GANTRY_SHIM ?? join(import.meta.dirname, '../../../build/gantry-shim');

/** The environment of the shim: no variables of a service manager, no secrets. */
export const SHIM_ENVIRONMENT: Readonly<Record<string, string>> = Object.fromEntries(
  ['PATH', 'ASAN_OPTIONS', 'UBSAN_OPTIONS']
    .map((name) => [name, process.env[name]] as const)
    .filter((entry): entry is [string, string] => entry[1] !== undefined),
);

/** That of a runtime, as the shim gives it: where crun puts a copy of itself, which stays when it is killed. */
export function runtimeEnvironment(folder: string): Record<string, string> {
  return { ...SHIM_ENVIRONMENT, _LIBCONTAINER_STATEDIR: folder };
}
