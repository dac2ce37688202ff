import * as containers from '@gantry/client/containers.ts';

import { command } from '../command-line/command.ts';
import { EXIT, Exit } from '../exit-codes.ts';
import { runAttached } from '../session/attached.ts';

/** `gantry attach`. */
export const attach = command({
  words: 'CONTAINER',
  count: [1, 1],
  flags: {
    'detach-keys': { kind: 'text', value: 'KEYS', help: 'Keys that leave it running (default ctrl-p,ctrl-q)' },
    'no-stdin': { kind: 'boolean', help: 'Output alone' },
    'sig-proxy': { kind: 'boolean', initial: 'true', help: 'Pass signals on to the container' },
  },
  offers: 'container',
  about: 'Ends with the code of the container when that ends, and with 0 after the detach keys.',
  run: async ({ connection: engine }, [ref = ''], flags) => {
    const { Id, Config, State } = await containers.inspect(engine, ref);
    if (!State.Running) throw new Exit(EXIT.failed, 'cannot attach to a stopped container, start it first');
    if (State.Paused) throw new Exit(EXIT.failed, 'cannot attach to a paused container, unpause it first');
    const stdin = !flags['no-stdin'] && Config.OpenStdin;
    if (stdin && Config.Tty && !process.stdin.isTTY) throw new Exit(EXIT.failed, 'the input device is not a TTY');
    const [detachKeys, passSignals] = [flags['detach-keys'], flags['sig-proxy']];
    return await runAttached(engine, Id, { tty: Config.Tty, stdin, detachKeys, passSignals });
  },
});
