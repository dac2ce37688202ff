import * as system from '@gantry/client/system.ts';

import { command } from '../command-line/command.ts';
import { printList, type Row } from '../output/format.ts';
import { sizeText } from '../output/human.ts';

const TITLES = { Type: 'TYPE', TotalCount: 'TOTAL', Active: 'ACTIVE', Size: 'SIZE', Reclaimable: 'RECLAIMABLE' };

/** `gantry system df`. */
export const diskUsage = command({
  words: '',
  count: [0, 0],
  flags: { format: { kind: 'text', value: 'FORMAT', help: 'json, or a template such as {{.Type}} {{.Size}}' } },
  about:
    'Fields of templates: .Type .TotalCount .Active .Size .Reclaimable. `gantry ps -as` and `gantry images` show the parts.',
  examples: ['gantry system df', "gantry system df --format '{{.Type}} {{.Reclaimable}}'"],
  run: async ({ connection }, _words, { format }) => {
    const { ImageUsage, ContainerUsage, VolumeUsage, BuildCacheUsage } = await system.diskUsage(connection);
    const rows = [
      rowOf('Images', ImageUsage),
      rowOf('Containers', ContainerUsage),
      rowOf('Local Volumes', VolumeUsage),
      rowOf('Build Cache', BuildCacheUsage),
    ];
    await printList({ titles: TITLES, columns: ['Type', 'TotalCount', 'Active', 'Size', 'Reclaimable'], rows }, format);
  },
});

function rowOf(Type: string, usage: system.Usage): Row {
  const { TotalCount, ActiveCount, TotalSize, Reclaimable } = usage;
  const share = TotalSize > 0 ? ` (${Math.floor((100 * Reclaimable) / TotalSize)}%)` : '';
  return {
    Type,
    TotalCount: String(TotalCount),
    Active: String(ActiveCount),
    Size: sizeText(TotalSize),
    Reclaimable: `${sizeText(Reclaimable)}${share}`,
  };
}
