import * as volumes from '@gantry/client/volumes.ts';

import { command, MANY } from '../command-line/command.ts';
import { filtersOf, mapOf } from '../command-line/values.ts';
import { each } from '../each.ts';
import { printList } from '../output/format.ts';
import { labelsText } from '../output/labels.ts';
import { LIST_FLAGS, OBJECT_FORMAT, wantsIds } from '../output/list-flags.ts';
import { printInspected } from '../system/inspect.ts';

export const createVolume = command({
  words: '[NAME]',
  count: [0, 1],
  flags: {
    driver: { kind: 'text', short: 'd', initial: 'local', help: 'Its driver' },
    label: { kind: 'list', value: 'NAME=VALUE', help: 'A label' },
    name: { kind: 'text', help: 'Its name, the same as the argument' },
    opt: { kind: 'list', short: 'o', value: 'NAME=VALUE', help: 'An option of the driver' },
  },
  examples: ['gantry volume create pages'],
  run: async ({ connection }, [word], { driver, label, name, opt }) => {
    const { Name } = await volumes.createVolume(connection, {
      Name: word ?? name ?? '',
      Driver: driver!,
      ...(opt.length > 0 && { DriverOpts: mapOf(opt) }),
      ...(label.length > 0 && { Labels: mapOf(label) }),
    });
    console.log(Name);
  },
});

const TITLES = {
  Name: 'VOLUME NAME',
  Driver: 'DRIVER',
  Scope: 'SCOPE',
  Mountpoint: 'MOUNTPOINT',
  Labels: 'LABELS',
  Links: 'LINKS',
  Size: 'SIZE',
  Availability: 'AVAILABILITY',
  Group: 'GROUP',
  Status: 'STATUS',
};

export const listVolumes = command({
  words: '',
  count: [0, 0],
  flags: LIST_FLAGS,
  about: 'Fields of templates: .Name .Driver .Scope .Mountpoint .Labels, and .Label "NAME".',
  examples: ['gantry volume ls --filter dangling=true -q'],
  run: async ({ connection }, _words, { filter, format, quiet }) => {
    const listed = await volumes.listVolumes(connection, { filters: filtersOf(filter) });
    const sorted = listed.toSorted((a, b) => (a.Name < b.Name ? -1 : 1));
    if (wantsIds({ quiet, format })) {
      for (const { Name } of sorted) console.log(Name);
      return;
    }
    const rows = sorted.map(({ Name, Driver, Scope, Mountpoint, Labels }) => ({
      Name,
      Driver,
      Scope,
      Mountpoint,
      Labels: labelsText(Labels ?? {}),
      Links: 'N/A',
      Size: 'N/A',
      // For volumes of a cluster.
      Availability: 'N/A',
      Group: 'N/A',
      Status: 'N/A',
      Label: (label: string) => Labels?.[label] ?? '',
    }));
    await printList({ titles: TITLES, columns: ['Driver', 'Name'], rows }, format);
  },
});

export const inspectVolumes = command({
  words: 'VOLUME [VOLUME...]',
  count: [1, MANY],
  flags: OBJECT_FORMAT,
  offers: 'volume',
  run: async ({ connection }, names, { format }) => {
    await printInspected(names, async (name) => await volumes.inspectVolume(connection, name), format);
  },
});

export const removeVolumes = command({
  words: 'VOLUME [VOLUME...]',
  count: [1, MANY],
  flags: { force: { kind: 'boolean', short: 'f', help: 'A missing one is not an error' } },
  offers: 'volume',
  run: async ({ connection }, names, { force }) => {
    await each(
      names,
      async (name) => {
        await volumes.removeVolume(connection, name, force);
        console.log(name);
      },
      { missingIsFine: force },
    );
  },
});
