import { createReadStream } from 'node:fs';
import type { Readable } from 'node:stream';

import type { Connection } from '@gantry/client/connection.ts';
import * as images from '@gantry/client/images.ts';
import type { Command } from 'commander';

import { each } from './containers.ts';
import { EXIT, Exit } from './exit-codes.ts';
import { collect, filtersOf } from './flags.ts';
import { ago, sizeText } from './human.ts';
import type { Context } from './main.ts';
import { tableText } from './table.ts';

type ImagesFlags = { all?: boolean; quiet?: boolean; digests?: boolean; filter: string[]; trunc: boolean };

/** `images`, `load`, `import`, `rmi`. */
export function addImageCommands(program: Command, context: Context): void {
  program
    .command('images [name]')
    .description('list images')
    .option('-a, --all', 'also intermediate ones')
    .option('-q, --quiet', 'ids alone')
    .option('--digests', 'with digests')
    .option('-f, --filter <filter>', 'key=value', collect, [])
    .option('--no-trunc', 'whole ids')
    .action(async (name: string | undefined, flags: ImagesFlags) => await list(context.connection, name, flags));

  program
    .command('load')
    .description('load images from an archive (docker save or OCI layout)')
    .option('-i, --input <file>', 'the archive (default: stdin)')
    .option('-q, --quiet', 'no progress')
    .action(async ({ input, quiet }: { input?: string; quiet?: boolean }) => {
      await images.loadImages(context.connection, archive(input), quiet ?? false, (line) => console.log(line));
    });

  program
    .command('import <file> [name]')
    .description('make an image of a root file system (tar; - is stdin)')
    .option('-c, --change <instruction>', 'such as CMD ["sh"]', collect, [])
    .option('-m, --message <text>', 'comment')
    .action(async (file: string, name: string | undefined, flags: { change: string[]; message?: string }) => {
      const id = await images.importImage(context.connection, archive(file === '-' ? undefined : file), {
        name: name ?? '',
        changes: flags.change,
        message: flags.message ?? '',
      });
      console.log(id);
    });

  program
    .command('rmi <images...>')
    .description('remove images')
    .option('-f, --force', 'also those that are in use')
    .option('--no-prune', 'keep untagged parents')
    .action(async (refs: string[], flags: { force?: boolean; prune: boolean }) => {
      await each(refs, async (ref) => {
        const removed = await images.removeImage(context.connection, ref, {
          force: flags.force,
          noprune: !flags.prune,
        });
        for (const { Untagged, Deleted } of removed) {
          console.log(Untagged === undefined ? `Deleted: ${Deleted}` : `Untagged: ${Untagged}`);
        }
      });
    });
}

async function list(engine: Connection, name: string | undefined, flags: ImagesFlags): Promise<void> {
  const listed = await images.listImages(engine, {
    all: flags.all,
    digests: flags.digests,
    filter: name,
    filters: filtersOf(flags.filter),
  });
  if (flags.quiet === true) {
    for (const { Id } of listed) console.log(flags.trunc ? short(Id) : Id);
    return;
  }
  const rows = listed.flatMap((image) => {
    const tags = image.RepoTags ?? ['<none>:<none>'];
    return tags.map((tag) => {
      const at = tag.lastIndexOf(':');
      return [
        tag.slice(0, at),
        tag.slice(at + 1),
        flags.trunc ? short(image.Id) : image.Id,
        ago(image.Created),
        sizeText(image.Size),
      ];
    });
  });
  console.log(tableText(['REPOSITORY', 'TAG', 'IMAGE ID', 'CREATED', 'SIZE'], rows));
}

function archive(file: string | undefined): Readable {
  if (file !== undefined) return createReadStream(file);
  if (process.stdin.isTTY) throw new Exit(EXIT.usage, 'an archive is expected on stdin, not a terminal');
  return process.stdin;
}

function short(id: string): string {
  return id.replace(/^sha256:/, '').slice(0, 12);
}
