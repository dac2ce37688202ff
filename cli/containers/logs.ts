import * as containers from '@gantry/client/containers.ts';

import { command } from '../command-line/command.ts';
import { timeOf } from '../command-line/values.ts';
import { copyFrames } from '../session/frames.ts';

const TIME = 'UNIX seconds, a date such as 2026-01-31T12:00:00Z, or how long ago, such as 10m';

/** `gantry logs`. */
export const logs = command({
  words: 'CONTAINER',
  count: [1, 1],
  flags: {
    details: { kind: 'boolean', help: 'With the attributes selected by --log-opt' },
    follow: { kind: 'boolean', short: 'f', help: 'Follow the output' },
    since: { kind: 'text', value: 'TIME', help: `From this time on: ${TIME}` },
    tail: { kind: 'text', short: 'n', value: 'LINES', initial: 'all', help: 'Only the last lines' },
    timestamps: { kind: 'boolean', short: 't', help: 'With times' },
    until: { kind: 'text', value: 'TIME', help: 'Up to this time' },
  },
  offers: 'container',
  examples: ['gantry logs -f --since 10m web'],
  run: async ({ connection }, [ref = ''], { since, until, ...flags }) => {
    const query = { stdout: true, stderr: true, ...flags, since: timeOf(since), until: timeOf(until) };
    const { Config } = await containers.inspect(connection, ref);
    await copyFrames(await containers.logs(connection, ref, query), Config.Tty);
  },
});
