import * as system from '@gantry/client/system.ts';

import { command } from '../command-line/command.ts';

/** `gantry page`. */
export const page = command({
  words: '',
  count: [0, 0],
  flags: {
    'read-only': { kind: 'boolean', help: 'A page that can change nothing' },
    close: { kind: 'boolean', help: 'End all open pages instead' },
  },
  about:
    'The address opens the page once, within five minutes, in a browser on the machine of the engine. For another machine ' +
    'forward its port: ssh -L PORT:127.0.0.1:PORT MACHINE.',
  examples: ['xdg-open "$(gantry page)"', 'gantry page --read-only', 'gantry page --close'],
  run: async ({ connection }, _words, { close, 'read-only': readOnly }) => {
    if (close) await system.closePage(connection);
    else console.log((await system.invitePage(connection, readOnly)).URL);
  },
});
