import type { PluginWire, Privilege } from '@gantry/engine/managed-plugins/schema.ts';

import type { Connection } from './connection.ts';

export type { Privilege } from '@gantry/engine/managed-plugins/schema.ts';

/** A plugin as the specification has it. */
export type Plugin = Omit<PluginWire, 'Manifest'> & { Manifest: { Description: string } };

/** GET /plugins. */
export async function listPlugins(engine: Connection): Promise<Plugin[]> {
  return await engine.call('GET', '/plugins');
}

/** POST /plugins/pull. `headers`: the credentials. */
export async function pullPlugin(
  engine: Connection,
  name: string,
  headers: Record<string, string>,
): Promise<Privilege[]> {
  return await engine.call('POST', '/plugins/pull', { query: { name }, headers });
}

/** GET /plugins/{name}. */
export async function inspectPlugin(engine: Connection, name: string): Promise<Plugin> {
  return await engine.call('GET', `/plugins/${name}`);
}

/** POST /plugins/{name}/enable. */
export async function enablePlugin(engine: Connection, name: string, timeoutSeconds?: number): Promise<void> {
  const query = timeoutSeconds === undefined ? {} : { timeout: timeoutSeconds };
  await engine.call('POST', `/plugins/${name}/enable`, { query });
}

/** POST /plugins/{name}/disable. */
export async function disablePlugin(engine: Connection, name: string, force = false): Promise<void> {
  await engine.call('POST', `/plugins/${name}/disable`, { query: { force } });
}

/** DELETE /plugins/{name}. */
export async function removePlugin(engine: Connection, name: string, force = false): Promise<void> {
  await engine.call('DELETE', `/plugins/${name}`, { query: { force } });
}
