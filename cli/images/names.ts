import { removeImage, tagImage } from '@gantry/client/images.ts';

import { command, MANY } from '../command-line/command.ts';
import { each } from '../each.ts';
import { visible } from '../output/escape.ts';
import { platformJson, PLATFORMS } from './platform-flag.ts';

/** `gantry tag`. */
export const tag = command({
  words: 'IMAGE[:TAG] NEW_NAME[:TAG]',
  count: [2, 2],
  flags: {},
  offers: 'image',
  examples: ['gantry tag busybox:latest mine:1'],
  run: async ({ connection }, [image = '', name = '']) => await tagImage(connection, image, name),
});

/** `gantry rmi`. */
export const rmi = command({
  words: 'IMAGE [IMAGE...]',
  count: [1, MANY],
  flags: {
    force: {
      kind: 'boolean',
      short: 'f',
      help: 'Even with several names or stopped containers; a missing one is not an error',
    },
    'no-prune': { kind: 'boolean', help: 'Keep untagged parents' },
    platform: { ...PLATFORMS, help: 'Only this platform of an image that has several; with --force; may be repeated' },
  },
  offers: 'image',
  run: async ({ connection }, refs, flags) => {
    const options = { force: flags.force, noprune: flags['no-prune'], platforms: flags.platform.map(platformJson) };
    await each(
      refs,
      async (ref) => {
        const removed = await removeImage(connection, ref, options);
        for (const { Untagged, Deleted } of removed) {
          console.log(visible(Untagged === undefined ? `Deleted: ${Deleted}` : `Untagged: ${Untagged}`));
        }
      },
      { missingIsFine: flags.force },
    );
  },
});
