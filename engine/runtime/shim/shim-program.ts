import { join } from 'node:path';

/** The path of gantry-shim; tests choose another build by the environment. */
export const SHIM_PROGRAM = process.env.GANTRY_SHIM ?? join(import.meta.dirname, '../../../build/gantry-shim');

/** The environment of the shim: no variables of a service manager, no secrets. */
export const SHIM_ENVIRONMENT: Readonly<Record<string, string>> = Object.fromEntries(
  ['PATH', 'ASAN_OPTIONS', 'UBSAN_OPTIONS']
    .map((name) => [name, process.env[name]] as const)
    .filter((entry): entry is [string, string] => entry[1] !== undefined),
);

/**
 * The environment of a runtime, as the shim sets it: crun copies itself into this folder, and a killed crun leaves the
 * copy there.
 */
export function runtimeEnvironment(folder: string): Record<string, string> {
  return { ...SHIM_ENVIRONMENT, _LIBCONTAINER_STATEDIR: folder };
}
