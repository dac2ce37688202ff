import { join } from 'node:path';

import type { Config } from '../config/daemon-config.ts';
import type { Database } from '../db/database.ts';
import { Trash } from '../trees/trash.ts';
import { pluginsFolder, TRASH } from './places.ts';
import { PluginRuns } from './runs/runs.ts';
import { InstalledPlugins } from './store.ts';

type Log = { warn(details: object, message: string): void };
type PluginParts = { installedPlugins: InstalledPlugins; pluginRuns: PluginRuns; pluginTrash: Trash };

/** The parts that this domain adds to the engine. The stack ends them. */
export function managedPluginParts(
  { config, db, log }: { config: Config; db: Database; log: Log },
  undo: AsyncDisposableStack,
): PluginParts {
  const installedPlugins = new InstalledPlugins(db);
  const pluginTrash = undo.use(
    new Trash(join(pluginsFolder(config), TRASH), (error, path) =>
      log.warn({ err: error, path }, 'the files of a removed plugin are still there; the next start tries again'),
    ),
  );
  return { installedPlugins, pluginRuns: new PluginRuns(config, installedPlugins), pluginTrash };
}
