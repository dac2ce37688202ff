import { join } from 'node:path';

/**
 * The folder of the keeper that holds this daemon's namespaces, if an ordinary user has started it; see shim/rootless.
 * The daemon is root in a user namespace then, and the machine's root to nobody.
 */
export const keeperFolder: string | undefined = process.env['GANTRY_ROOTLESS'];

/** Whether the daemon is one of an ordinary user. */
export const isRootless: boolean = keeperFolder !== undefined;

type Defaults = Readonly<{ hosts: string[]; 'data-root': string; 'exec-root': string; pidfile: string }>;

/** The settings whose defaults are places of root's. `folder` is the keeper's, in a folder that is the user's own. */
export function rootlessDefaults(folder: string, environment: NodeJS.ProcessEnv): Defaults {
  const home = environment['XDG_DATA_HOME'] ?? join(environment['HOME'] ?? '/', '.local/share');
  return {
    hosts: [`unix://${join(folder, 'gantry.sock')}`],
    'data-root': join(home, 'gantry'),
    'exec-root': join(folder, 'run'),
    pidfile: join(folder, 'gantry.pid'),
  };
}

/** The name of an attribute of overlayfs: in a user namespace it takes those that users can set. */
export function overlayAttribute(name: string): string {
  return `${isRootless ? 'user' : 'trusted'}.overlay.${name}`;
}
