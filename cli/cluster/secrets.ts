import { readFile } from 'node:fs/promises';
import { buffer } from 'node:stream/consumers';

import * as client from '@gantry/client/secrets.ts';

import { command, MANY } from '../command-line/command.ts';
import { filtersOf, mapOf } from '../command-line/values.ts';
import { each } from '../each.ts';
import { UsageError } from '../exit-codes.ts';
import { printList } from '../output/format.ts';
import { ago } from '../output/human.ts';
import { labelsText } from '../output/labels.ts';
import { LIST_FLAGS, OBJECT_FORMAT, wantsIds } from '../output/list-flags.ts';
import { printInspected } from '../system/inspect.ts';

const TITLES = {
  ID: 'ID',
  Name: 'NAME',
  CreatedAt: 'CREATED',
  UpdatedAt: 'UPDATED',
  Labels: 'LABELS',
};

/** The commands of `gantry secret` and of `gantry config`. */
function commandsOf(kind: client.SecretKind) {
  const upper = kind.toUpperCase();
  const words = `${upper} [${upper}...]`;
  return {
    create: command({
      words: `NAME [FILE|-]`,
      count: [2, 2],
      flags: {
        label: { kind: 'list', short: 'l', value: 'NAME=VALUE', help: 'A label' },
        'template-driver': { kind: 'text', help: 'Its data is a template: golang', offers: ['golang'] },
      },
      offers: 'file',
      about: 'A dash stands for the standard input.',
      examples: [`printf hidden | gantry ${kind} create password -`],
      run: async ({ connection }, [Name = '', file = ''], flags) => {
        const driver = flags['template-driver'];
        const { ID } = await client.createSecret(connection, kind, {
          ...{ Name, Labels: mapOf(flags.label), Data: (await readValue(file)).toString('base64') },
          ...(driver !== undefined && { Templating: { Name: driver } }),
        });
        console.log(ID);
      },
    }),
    ls: command({
      words: '',
      count: [0, 0],
      flags: LIST_FLAGS,
      about: `Fields of templates: .${Object.keys(TITLES).join(' .')}, and .Label "NAME".`,
      run: async ({ connection }, _words, flags) => {
        const listed = await client.listSecrets(connection, kind, { filters: filtersOf(flags.filter) });
        if (wantsIds(flags)) {
          for (const { ID } of listed) console.log(ID);
          return;
        }
        const rows = listed.map(({ ID, CreatedAt, UpdatedAt, Spec }) => ({
          ...{ ID, Name: Spec.Name, CreatedAt: since(CreatedAt), UpdatedAt: since(UpdatedAt) },
          Labels: labelsText(Spec.Labels),
          Label: (label: string) => Spec.Labels[label] ?? '',
        }));
        await printList({ titles: TITLES, columns: ['ID', 'Name', 'CreatedAt', 'UpdatedAt'], rows }, flags.format);
      },
    }),
    inspect: command({
      words,
      count: [1, MANY],
      flags: OBJECT_FORMAT,
      offers: kind,
      run: async ({ connection }, refs, { format }) => {
        await printInspected(refs, async (ref) => await client.inspectSecret(connection, kind, ref), format);
      },
    }),
    rm: command({
      words,
      count: [1, MANY],
      flags: {},
      offers: kind,
      run: async ({ connection }, refs) => {
        await each(refs, async (ref) => {
          await client.removeSecret(connection, kind, ref);
          console.log(ref);
        });
      },
    }),
  };
}

export const secretCommands = commandsOf('secret');
export const configCommands = commandsOf('config');

async function readValue(file: string): Promise<Buffer> {
  if (file !== '-') return await readFile(file);
  if (process.stdin.isTTY) throw new UsageError('stdin is a terminal, not data: redirect');
  return await buffer(process.stdin);
}

function since(time: string): string {
  return ago(Date.parse(time) / 1000);
}
