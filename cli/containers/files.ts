import { pipeline } from 'node:stream/promises';

import { changes, exportContainer } from '@gantry/client/files.ts';

import { command } from '../command-line/command.ts';
import { UsageError } from '../exit-codes.ts';
import { writeWhole } from '../images/archives.ts';
import { visible } from '../output/escape.ts';

/** `gantry diff`. */
export const diff = command({
  words: 'CONTAINER',
  count: [1, 1],
  flags: {},
  offers: 'container',
  about: 'A is added, C is changed, D is deleted.',
  examples: ['gantry diff web'],
  run: async ({ connection }, [ref = '']) => {
    for (const { Path, Kind } of await changes(connection, ref)) console.log(`${'CAD'[Kind]} ${visible(Path)}`);
  },
});

/** `gantry export`. */
export const exportCommand = command({
  words: 'CONTAINER',
  count: [1, 1],
  flags: {
    output: { kind: 'text', short: 'o', value: 'FILE', help: 'Where to (default: stdout)', offers: 'file' },
  },
  offers: 'container',
  examples: ['gantry export -o root.tar web', 'gantry export web | gantry import - web:copy'],
  run: async ({ connection }, [ref = ''], { output }) => {
    if (output === undefined && process.stdout.isTTY) {
      throw new UsageError('refusing to write an archive to a terminal: use -o or redirect');
    }
    const archive = await exportContainer(connection, ref);
    if (output === undefined) await pipeline(archive, process.stdout, { end: false });
    else await writeWhole(output, archive);
  },
});
