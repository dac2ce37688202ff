import type { Connection } from '@gantry/client/connection.ts';
import * as prune from '@gantry/client/prune.ts';

import { command, type Command } from '../command-line/command.ts';
import { filtersOf } from '../command-line/values.ts';
import { UsageError } from '../exit-codes.ts';
import { sizeText } from '../output/human.ts';

type Pruned = Readonly<{ lines: readonly string[]; bytes: number }>;
type Prune = (engine: Connection, filter: readonly string[], isAll: boolean) => Promise<Pruned>;

const FILTER = {
  kind: 'list',
  value: 'KEY=VALUE',
  help: 'Only matching ones, such as until=24h or label=a=b',
} as const;
const FORCE = { kind: 'boolean', short: 'f', help: 'Without a question' } as const;

const containers: Prune = async (engine, filter) => {
  const { ContainersDeleted, SpaceReclaimed } = await prune.pruneContainers(engine, { filters: filtersOf(filter) });
  return { lines: section('Containers', ContainersDeleted), bytes: SpaceReclaimed };
};

const images: Prune = async (engine, filter, isAll) => {
  const filters = filtersOf([...filter, `dangling=${!isAll}`]);
  const { ImagesDeleted, SpaceReclaimed } = await prune.pruneImages(engine, { filters });
  const names = ImagesDeleted?.map(({ Untagged, Deleted }) =>
    Untagged === undefined ? `deleted: ${Deleted}` : `untagged: ${Untagged}`,
  );
  return { lines: section('Images', names), bytes: SpaceReclaimed };
};

const volumes: Prune = async (engine, filter, isAll) => {
  const filters = filtersOf(isAll ? [...filter, 'all=true'] : filter);
  const { VolumesDeleted, SpaceReclaimed } = await prune.pruneVolumes(engine, { filters });
  return { lines: section('Volumes', VolumesDeleted), bytes: SpaceReclaimed };
};

const networks: Prune = async (engine, filter) => {
  const { NetworksDeleted } = await prune.pruneNetworks(engine, { filters: filtersOf(filter) });
  return { lines: section('Networks', NetworksDeleted), bytes: 0 };
};

const caches: Prune = async (engine, filter, isAll) => {
  const query = { all: isAll, filters: filtersOf(filter) };
  const { CachesDeleted, SpaceReclaimed } = await prune.pruneBuildCaches(engine, query);
  return { lines: section('build cache objects', CachesDeleted), bytes: SpaceReclaimed };
};

export const pruneContainers = pruneCommand('all stopped containers', containers);
export const pruneImages = pruneCommand('all images without a name', images, 'All images that no container uses');
export const pruneVolumes = pruneCommand(
  'all volumes without a name that no container uses',
  volumes,
  'Also volumes with names',
);
export const pruneNetworks = pruneCommand('all networks that no container uses', networks);
export const pruneCaches = pruneCommand('all caches of builds', caches, 'Without effect: all go in any case');

/** `gantry system prune`. */
export const pruneSystem = command({
  words: '',
  count: [0, 0],
  flags: {
    all: { kind: 'boolean', short: 'a', help: 'All images that no container uses, not only those without a name' },
    filter: FILTER,
    force: FORCE,
    volumes: { kind: 'boolean', help: 'Also volumes without a name that no container uses' },
  },
  examples: ['gantry system prune', 'gantry system prune -af --volumes'],
  run: async ({ connection }, _words, flags) => {
    const objects = [
      'stopped containers',
      'networks that no container uses',
      ...(flags.volumes ? ['volumes without a name that no container uses'] : []),
      flags.all ? 'images that no container uses' : 'images without a name',
      'caches of builds',
    ];
    if (!flags.force) await confirm(`all ${objects.join(', ')}`);
    let bytes = 0;
    // Volumes and images are free when the containers are gone.
    for (const work of [containers, networks, ...(flags.volumes ? [volumes] : []), images, caches]) {
      const pruned = await work(connection, flags.filter, work !== volumes && flags.all);
      for (const line of pruned.lines) console.log(line);
      bytes += pruned.bytes;
    }
    console.log(`Total reclaimed space: ${sizeText(bytes)}`);
  },
});

function pruneCommand(objects: string, work: Prune, allHelp?: string): Command {
  return command({
    words: '',
    count: [0, 0],
    flags: {
      ...(allHelp !== undefined && { all: { kind: 'boolean', short: 'a', help: allHelp } as const }),
      filter: FILTER,
      force: FORCE,
    },
    run: async ({ connection }, _words, flags) => {
      if (!flags.force) await confirm(objects);
      const { lines, bytes } = await work(connection, flags.filter, flags.all === true);
      for (const line of lines) console.log(line);
      if (work !== networks) console.log(`Total reclaimed space: ${sizeText(bytes)}`);
    },
  });
}

function section(title: string, names: readonly string[] | null = []): string[] {
  return names === null || names.length === 0 ? [] : [`Deleted ${title}:`, ...names, ''];
}

/** Asks the user; throws when the answer is not yes. */
async function confirm(objects: string): Promise<void> {
  if (!process.stdin.isTTY) throw new UsageError('stdin is no terminal for a question: use --force');
  const { createInterface } = await import('node:readline/promises');
  using asking = createInterface({ input: process.stdin, output: process.stderr });
  const answer = await asking.question(`This removes ${objects}. Continue? [y/N] `);
  if (!/^y(es)?$/i.test(answer.trim())) throw new UsageError('nothing was removed');
}
