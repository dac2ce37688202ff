import { join } from 'node:path';

import type { Config } from '../config/daemon-config.ts';
import type { Database } from '../db/database.ts';
import { Trash } from '../trees/trash.ts';
import { pluginsFolder, TRASH } from './places.ts';
import { PluginRuns } from './runs.ts';
import { InstalledPlugins } from './store.ts';

type Log = { warn(details: object, message: string): void };
type PluginParts = { installedPlugins: InstalledPlugins; pluginRuns: PluginRuns; pluginTrash: Trash };

/** What this domain adds to the engine. The stack ends it. */
export function managedPluginParts(
  { config, db, log }: { config: Config; db: Database; log: Log },
  undo: AsyncDisposableStack,
): PluginParts {
  const installedPlugins = new InstalledPlugins(db);
  const pluginTrash = undo.use(
    new Trash(join(pluginsFolder(config), TRASH), (error, path) =>
      log.warn({ err: error, path }, 'a removed plugin is still there; the next start tries again'),
    ),
  );
  return { installedPlugins, pluginRuns: new PluginRuns(config, installedPlugins), pluginTrash };
}
