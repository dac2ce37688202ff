import { createInterface } from 'node:readline/promises';

import * as plugins from '@gantry/client/plugins.ts';

import { command, MANY } from '../command-line/command.ts';
import { each } from '../each.ts';
import { EXIT, Exit } from '../exit-codes.ts';
import { printList } from '../output/format.ts';
import { LIST_FLAGS, NO_TRUNC, OBJECT_FORMAT, wantsIds } from '../output/list-flags.ts';
import { authHeader } from '../registry/docker-config.ts';
import { printInspected } from '../system/inspect.ts';

const SHORT_ID = 12;
const TITLES = {
  ID: 'ID',
  Name: 'NAME',
  Description: 'DESCRIPTION',
  Enabled: 'ENABLED',
  PluginReference: 'PLUGIN REFERENCE',
};

export const listPlugins = command({
  words: '',
  count: [0, 0],
  flags: { format: LIST_FLAGS.format, quiet: LIST_FLAGS.quiet, 'no-trunc': NO_TRUNC },
  about: 'Fields of templates: .ID .Name .Description .Enabled .PluginReference',
  examples: ['gantry plugin ls', "gantry plugin ls --format '{{.Name}} {{.Enabled}}'"],
  run: async ({ connection }, _words, { format, quiet, 'no-trunc': isWhole }) => {
    const listed = await plugins.listPlugins(connection);
    const idOf = (id: string): string => (isWhole ? id : id.slice(0, SHORT_ID));
    if (wantsIds({ quiet, format })) {
      for (const { Id } of listed) console.log(idOf(Id));
      return;
    }
    const rows = listed.map(({ Id, PluginReference, Manifest, Active }) => ({
      ID: idOf(Id),
      Name: PluginReference,
      Description: Manifest.Description,
      Enabled: String(Active),
      PluginReference,
    }));
    await printList({ titles: TITLES, columns: ['ID', 'Name', 'Description', 'Enabled'], rows }, format);
  },
});

export const inspectPlugins = command({
  words: 'PLUGIN [PLUGIN...]',
  count: [1, MANY],
  flags: OBJECT_FORMAT,
  offers: 'plugin',
  run: async ({ connection }, names, { format }) => {
    await printInspected(names, async (name) => await plugins.inspectPlugin(connection, name), format);
  },
});

export const installPlugin = command({
  words: 'PLUGIN',
  count: [1, 1],
  flags: {
    disable: { kind: 'boolean', help: 'Do not enable it' },
    'grant-all-permissions': { kind: 'boolean', help: 'Grant its privileges without a question' },
  },
  about: 'Shows the privileges of the plugin, and asks, before it is enabled.',
  examples: ['gantry plugin install registry.example.org/volumes:1'],
  run: async ({ connection }, [name = ''], { disable, 'grant-all-permissions': isGranted }) => {
    const privileges = await plugins.pullPlugin(connection, name, await authHeader(name));
    if (!isGranted && privileges.length > 0 && !(await mayHave(name, privileges))) {
      await plugins.removePlugin(connection, name);
      throw new Exit(EXIT.failed, 'Plugin installation cancelled: its permissions were not granted');
    }
    if (!disable) await plugins.enablePlugin(connection, name);
    console.log(name);
  },
});

/** Without a terminal to ask on, the answer is no. */
async function mayHave(name: string, privileges: readonly plugins.Privilege[]): Promise<boolean> {
  console.error(`Plugin "${name}" is requesting the following privileges:`);
  for (const { Name, Value } of privileges) console.error(` - ${Name}: [${Value.join(' ')}]`);
  const asking = createInterface({ input: process.stdin, output: process.stderr });
  try {
    const ended = new AbortController();
    asking.once('close', () => ended.abort());
    const answer = await asking.question('Do you grant the above permissions? [y/N] ', { signal: ended.signal });
    return /^y(es)?$/i.test(answer.trim());
  } catch (error) {
    if (error instanceof Error && error.name === 'AbortError') return false;
    throw error;
  } finally {
    asking.close();
  }
}

export const enablePlugin = command({
  words: 'PLUGIN',
  count: [1, 1],
  flags: { timeout: { kind: 'integer', value: 'SECONDS', help: 'Time that it has to answer (default 30)' } },
  offers: 'plugin',
  run: async ({ connection }, [name = ''], { timeout }) => {
    await plugins.enablePlugin(connection, name, timeout);
    console.log(name);
  },
});

export const disablePlugin = command({
  words: 'PLUGIN',
  count: [1, 1],
  flags: { force: { kind: 'boolean', short: 'f', help: 'Even while it is in use' } },
  offers: 'plugin',
  run: async ({ connection }, [name = ''], { force }) => {
    await plugins.disablePlugin(connection, name, force);
    console.log(name);
  },
});

export const removePlugins = command({
  words: 'PLUGIN [PLUGIN...]',
  count: [1, MANY],
  flags: { force: { kind: 'boolean', short: 'f', help: 'Even while it is enabled' } },
  offers: 'plugin',
  run: async ({ connection }, names, { force }) => {
    await each(names, async (name) => {
      await plugins.removePlugin(connection, name, force);
      console.log(name);
    });
  },
});
