import { join } from 'node:path';

/** Where the build puts gantry-shim. The tests choose another build of it by the environment. */
export const SHIM_PROGRAM = process.env.GANTRY_SHIM ?? join(import.meta.dirname, '../../build/gantry-shim');

/** What the shim and the runtime see of the daemon's environment: nothing of a service manager's, no secrets. */
export const SHIM_ENVIRONMENT: Readonly<Record<string, string>> = Object.fromEntries(
  ['PATH', 'ASAN_OPTIONS', 'UBSAN_OPTIONS']
    .map((name) => [name, process.env[name]] as const)
    .filter((entry): entry is [string, string] => entry[1] !== undefined),
);
