import { listImages, type ImageSummary } from '@gantry/client/images.ts';

import { command } from '../command-line/command.ts';
import { filtersOf } from '../command-line/values.ts';
import { printList, type Row } from '../output/format.ts';
import { ago, shortId, sizeText, timeText } from '../output/human.ts';
import { LIST_FLAGS, NO_TRUNC, wantsIds } from '../output/list-flags.ts';

const TITLES = {
  Repository: 'REPOSITORY',
  Tag: 'TAG',
  Digest: 'DIGEST',
  ID: 'IMAGE ID',
  CreatedSince: 'CREATED',
  CreatedAt: 'CREATED AT',
  Size: 'SIZE',
  Containers: 'CONTAINERS',
  SharedSize: 'SHARED SIZE',
  UniqueSize: 'UNIQUE SIZE',
  VirtualSize: 'VIRTUAL SIZE',
};

/** `gantry images`. */
export const images = command({
  words: '[NAME[:TAG]]',
  count: [0, 1],
  flags: {
    ...LIST_FLAGS,
    all: { kind: 'boolean', short: 'a', help: 'Also intermediate images' },
    digests: { kind: 'boolean', help: 'With digests' },
    'no-trunc': NO_TRUNC,
  },
  offers: 'image',
  about: 'Fields of templates: .ID .Repository .Tag .Digest .CreatedSince .CreatedAt .Size.',
  examples: ['gantry images --filter dangling=true -q', "gantry images --format '{{.Repository}}:{{.Tag}}'"],
  run: async ({ connection }, [name], flags) => {
    const digests = flags.digests || flags.format?.includes('.Digest') === true;
    const filters = [...flags.filter, ...(name === undefined ? [] : [`reference=${name}`])];
    const listed = await listImages(connection, { all: flags.all, digests, filters: filtersOf(filters) });
    const columns = ['Repository', 'Tag', ...(flags.digests ? ['Digest'] : []), 'ID', 'CreatedSince', 'Size'];
    const rows = listed.flatMap((image) => rowsOf(image, digests, flags['no-trunc']));
    if (wantsIds(flags)) {
      for (const { ID } of rows) console.log(ID);
      return;
    }
    await printList({ titles: TITLES, columns, rows }, flags.format);
  },
});

/** One row for each name; with digests, one for each name and digest. */
function rowsOf(image: ImageSummary, digests: boolean, whole: boolean): Row[] {
  const tags = (image.RepoTags ?? []).filter((tag) => tag !== '<none>:<none>');
  const known = (image.RepoDigests ?? []).filter((digest) => digest !== '<none>@<none>');
  const named = tags.map((tag) => {
    const at = tag.lastIndexOf(':');
    const repository = tag.slice(0, at);
    return { repository, tag: tag.slice(at + 1), digest: digestOf(known, repository) };
  });
  if (digests || named.length === 0) {
    for (const digest of known) {
      const [repository = '', value = ''] = digest.split('@');
      if (!named.some((each) => each.repository === repository))
        named.push({ repository, tag: '<none>', digest: value });
    }
  }
  if (named.length === 0) named.push({ repository: '<none>', tag: '<none>', digest: '<none>' });
  return named.map(({ repository, tag, digest }) => ({
    ID: whole ? image.Id : shortId(image.Id),
    Repository: repository,
    Tag: tag,
    Digest: digest,
    CreatedSince: ago(image.Created),
    CreatedAt: timeText(image.Created),
    Size: sizeText(image.Size),
    Containers: image.Containers < 0 ? 'N/A' : String(image.Containers),
    SharedSize: image.SharedSize < 0 ? 'N/A' : sizeText(image.SharedSize),
    UniqueSize: 'N/A',
    VirtualSize: sizeText(image.VirtualSize, 4),
  }));
}

function digestOf(known: readonly string[], repository: string): string {
  return known.find((digest) => digest.startsWith(`${repository}@`))?.split('@')[1] ?? '<none>';
}
