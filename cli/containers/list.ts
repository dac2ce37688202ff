import * as containers from '@gantry/client/containers.ts';

import { command, type Given } from '../command-line/command.ts';
import { filtersOf } from '../command-line/values.ts';
import { printList, type Row } from '../output/format.ts';
import { ago, shortId, sizeText, timeText } from '../output/human.ts';
import { labelsText } from '../output/labels.ts';
import { LIST_FLAGS, NO_TRUNC } from '../output/list-flags.ts';
import { portsText } from '../output/ports.ts';

const FLAGS = {
  ...LIST_FLAGS,
  all: { kind: 'boolean', short: 'a', help: 'Also stopped containers' },
  last: { kind: 'integer', short: 'n', help: 'Only the last created ones' },
  latest: { kind: 'boolean', short: 'l', help: 'Only the last created one' },
  'no-trunc': NO_TRUNC,
  size: { kind: 'boolean', short: 's', help: 'With sizes' },
} as const;
type PsFlags = Given<typeof FLAGS>;

const TITLES = {
  ID: 'CONTAINER ID',
  Image: 'IMAGE',
  Command: 'COMMAND',
  CreatedAt: 'CREATED AT',
  RunningFor: 'CREATED',
  Status: 'STATUS',
  State: 'STATE',
  Ports: 'PORTS',
  Names: 'NAMES',
  Size: 'SIZE',
  Labels: 'LABELS',
  Mounts: 'MOUNTS',
  LocalVolumes: 'LOCAL VOLUMES',
  Networks: 'NETWORKS',
};

/** `gantry ps`. */
export const ps = command({
  words: '',
  count: [0, 0],
  flags: FLAGS,
  about:
    'Fields of templates: .ID .Image .Command .CreatedAt .RunningFor .Ports .State .Status .Size .Names .Labels .Mounts .LocalVolumes .Networks, and .Label "NAME".',
  examples: ['gantry ps -a --filter status=exited', "gantry ps --format '{{.Names}}: {{.Status}}'"],
  run: async ({ connection }, _words, flags) => {
    const wantsSize = flags.size || flags.format?.includes('.Size') === true;
    const listed = await containers.list(connection, {
      all: flags.all,
      limit: flags.latest ? 1 : flags.last,
      size: wantsSize,
      filters: filtersOf(flags.filter),
    });
    if (flags.quiet) {
      if (flags.format) console.error('WARNING: Ignoring custom format, because both --format and --quiet are set.');
      for (const { Id } of listed) console.log(flags['no-trunc'] ? Id : shortId(Id));
      return;
    }
    const columns = [
      'ID',
      'Image',
      'Command',
      'RunningFor',
      'Status',
      'Ports',
      'Names',
      ...(flags.size ? ['Size'] : []),
    ];
    await printList({ titles: TITLES, columns, rows: listed.map((each) => rowOf(each, flags)) }, flags.format);
  },
});

function rowOf(container: containers.Summary, flags: PsFlags): Row {
  const whole = flags['no-trunc'];
  const names = container.Names.map((name) => name.replace(/^\//, ''));
  const { SizeRw, SizeRootFs, Labels } = container;
  const mounts = container.Mounts.map(({ Name, Source }) => Name ?? Source);
  return {
    ID: whole ? container.Id : shortId(container.Id),
    Image: !whole && container.Image.startsWith('sha256:') ? shortId(container.Image) : container.Image,
    Command: JSON.stringify(whole ? container.Command : truncate(container.Command, 20)),
    CreatedAt: timeText(container.Created),
    RunningFor: ago(container.Created),
    Ports: portsText(container.Ports),
    State: container.State,
    Status: container.Status,
    Size:
      SizeRw === undefined
        ? '0B'
        : `${sizeText(SizeRw)}${(SizeRootFs ?? 0) > 0 ? ` (virtual ${sizeText(SizeRootFs!)})` : ''}`,
    // Names with a slash inside belong to links.
    Names: (whole ? names : names.filter((name) => !name.includes('/'))).join(','),
    Labels: labelsText(Labels),
    Mounts: mounts.map((each) => (whole ? each : truncate(each, 15))).join(','),
    LocalVolumes: String(container.Mounts.filter(({ Driver }) => Driver === 'local').length),
    Networks: Object.keys(container.NetworkSettings.Networks).join(','),
    Label: (name) => Labels[name] ?? '',
  };
}

function truncate(text: string, length: number): string {
  const characters = Array.from(text);
  return characters.length > length ? `${characters.slice(0, length - 1).join('')}…` : text;
}
