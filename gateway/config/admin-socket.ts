import { join } from 'node:path';

import type { Config } from './schema.ts';

/** For root in /run, for others where their sockets belong. */
export function defaultSocketPath(): string {
  if (process.getuid?.() === 0) return '/run/gantry/gateway.sock';
  return join(process.env['XDG_RUNTIME_DIR'] ?? '/tmp', `gantry-gateway-${process.getuid?.() ?? 0}.sock`);
}

/** Undefined: no socket. */
export function adminSocketPath({ admin }: Pick<Config, 'admin'>): string | undefined {
  const path = admin.socket ?? defaultSocketPath();
  return path === '' ? undefined : path;
}
