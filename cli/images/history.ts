import { imageHistory, type HistoryStep } from '@gantry/client/images.ts';

import { command, type Given } from '../command-line/command.ts';
import { printList, type Row } from '../output/format.ts';
import { ago, shortId, sizeText } from '../output/human.ts';
import { LIST_FLAGS, NO_TRUNC, wantsIds } from '../output/list-flags.ts';
import { PLATFORM, platformJson } from './platform-flag.ts';

const FLAGS = {
  format: LIST_FLAGS.format,
  human: { kind: 'boolean', short: 'H', initial: 'true', help: 'Readable sizes and times' },
  'no-trunc': NO_TRUNC,
  platform: PLATFORM,
  quiet: LIST_FLAGS.quiet,
} as const;

const TITLES = {
  ID: 'IMAGE',
  CreatedSince: 'CREATED',
  CreatedAt: 'CREATED AT',
  CreatedBy: 'CREATED BY',
  Size: 'SIZE',
  Comment: 'COMMENT',
};

/** `gantry history`. */
export const history = command({
  words: 'IMAGE',
  count: [1, 1],
  flags: FLAGS,
  offers: 'image',
  about: 'Fields of templates: .ID .CreatedSince .CreatedAt .CreatedBy .Size .Comment.',
  run: async ({ connection }, [name = ''], flags) => {
    const steps = await imageHistory(connection, name, flags.platform && platformJson(flags.platform));
    if (wantsIds(flags)) {
      for (const { Id } of steps) console.log(flags['no-trunc'] ? Id : shortId(Id));
      return;
    }
    const columns = ['ID', flags.human ? 'CreatedSince' : 'CreatedAt', 'CreatedBy', 'Size', 'Comment'];
    await printList({ titles: TITLES, columns, rows: steps.map((step) => rowOf(step, flags)) }, flags.format);
  },
});

function rowOf({ Id, Created, CreatedBy, Size, Comment }: HistoryStep, flags: Given<typeof FLAGS>): Row {
  const whole = flags['no-trunc'];
  const by = CreatedBy.replaceAll('\t', ' ');
  return {
    ID: whole || Id === '<missing>' ? Id : shortId(Id),
    CreatedSince: ago(Created),
    CreatedAt: new Date(Created * 1000).toISOString().replace('.000', ''),
    CreatedBy: whole || by.length <= 45 ? by : `${by.slice(0, 44)}…`,
    Size: flags.human ? sizeText(Size) : String(Size),
    Comment,
  };
}
