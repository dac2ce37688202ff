import { searchImages, type SearchResult } from '@gantry/client/images.ts';

import { command } from '../command-line/command.ts';
import { filtersOf } from '../command-line/values.ts';
import { printList, type Row } from '../output/format.ts';
import { LIST_FLAGS, NO_TRUNC } from '../output/list-flags.ts';
import { authHeader } from './docker-config.ts';

const TITLES = {
  Name: 'NAME',
  Description: 'DESCRIPTION',
  StarCount: 'STARS',
  IsOfficial: 'OFFICIAL',
  IsAutomated: 'AUTOMATED',
};
const COLUMNS = ['Name', 'Description', 'StarCount', 'IsOfficial'];
const DESCRIPTION_LENGTH = 45;

/** `gantry search`. */
export const search = command({
  words: 'TERM',
  count: [1, 1],
  flags: {
    filter: LIST_FLAGS.filter,
    format: LIST_FLAGS.format,
    limit: { kind: 'integer', help: 'How many results at most, 1 to 100; 25 without' },
    'no-trunc': NO_TRUNC,
  },
  about:
    'Filters: stars=3, is-official=true, is-automated=false. A host before a slash in the term is the index to ask.',
  examples: ['gantry search --filter stars=10 nginx', 'gantry search localhost:5000/nginx'],
  run: async ({ connection }, [term = ''], flags) => {
    const filters = filtersOf(flags.filter);
    const query = { term, ...(flags.limit !== undefined && { limit: flags.limit }), ...(filters && { filters }) };
    const results = await searchImages(connection, query, await authHeader(term));
    const rows = results.map((result) => rowOf(result, flags['no-trunc']));
    await printList({ titles: TITLES, columns: COLUMNS, rows }, flags.format);
  },
});

function rowOf(result: SearchResult, whole: boolean): Row {
  const description = result.description.replaceAll(/[\n\r]/g, ' ');
  const isShort = whole || description.length <= DESCRIPTION_LENGTH;
  return {
    Name: result.name,
    Description: isShort ? description : `${description.slice(0, DESCRIPTION_LENGTH - 1)}…`,
    StarCount: String(result.star_count),
    IsOfficial: result.is_official ? '[OK]' : '',
    IsAutomated: result.is_automated ? '[OK]' : '',
  };
}
