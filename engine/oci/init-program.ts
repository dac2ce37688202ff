import { join } from 'node:path';

/** The program's path in the container. */
export const INIT_PATH = '/sbin/docker-init';

/** The first process of a container with `Init`: it forwards signals, and reaps orphans. */
export const INIT_PROGRAM = join(import.meta.dirname, '../../build/gantry-init');
