import * as images from '@gantry/client/images.ts';

import { command } from '../command-line/command.ts';

/** `gantry commit`. */
export const commit = command({
  words: 'CONTAINER [NAME[:TAG]]',
  count: [1, 2],
  flags: {
    author: { kind: 'text', short: 'a', help: 'The author of the image' },
    change: {
      kind: 'list',
      short: 'c',
      value: 'INSTRUCTION',
      help: 'An instruction for the image, such as CMD ["sh"]',
    },
    message: { kind: 'text', short: 'm', help: 'A comment' },
    'no-pause': { kind: 'boolean', help: 'Do not pause the container meanwhile' },
  },
  offers: 'container',
  examples: [`gantry commit -c 'CMD ["nginx"]' web mine:1`],
  run: async ({ connection }, [container = '', name = ''], { author, change, message, 'no-pause': isRunning }) => {
    const query = { container, repo: name, author, comment: message, changes: change, pause: !isRunning };
    console.log(await images.commitContainer(connection, query));
  },
});
