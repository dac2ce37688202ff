import * as containers from '@gantry/client/containers.ts';

import { command, MANY } from '../command-line/command.ts';
import { EXIT, Exit } from '../exit-codes.ts';
import { tableText } from '../output/table.ts';

/** As in docker, columns of processes are wider than those of other tables. */
const LEAST_OF_TOP = 17;

/** `gantry top`. */
export const top = command({
  words: 'CONTAINER [PS_OPTIONS]',
  count: [1, MANY],
  flags: {},
  passesOn: true,
  offers: 'container',
  examples: ['gantry top web', 'gantry top web -o pid,args'],
  run: async ({ connection }, [ref = '', ...words]) => {
    const { Titles, Processes } = await containers.top(
      connection,
      ref,
      words.length === 0 ? undefined : words.join(' '),
    );
    console.log(tableText(Titles, Processes, LEAST_OF_TOP));
  },
});

/** `gantry port`. */
export const port = command({
  words: 'CONTAINER [PORT[/PROTOCOL]]',
  count: [1, 2],
  flags: {},
  offers: 'container',
  examples: ['gantry port web', 'gantry port web 80'],
  run: async ({ connection }, [ref = '', wanted]) => {
    const { NetworkSettings } = await containers.inspect(connection, ref);
    const published = Object.entries(NetworkSettings.Ports).flatMap(([inside, bindings]) =>
      (bindings ?? []).map(({ HostIp, HostPort }) => ({ inside, outside: `${hostOf(HostIp)}:${HostPort}` })),
    );
    if (wanted === undefined) {
      for (const { inside, outside } of published) console.log(`${inside} -> ${outside}`);
      return;
    }
    const name = wanted.includes('/') ? wanted : `${wanted}/tcp`;
    const found = published.filter(({ inside }) => inside === name);
    if (found.length === 0) throw new Exit(EXIT.failed, `No public port '${wanted}' published for ${ref}`);
    for (const { outside } of found) console.log(outside);
  },
});

function hostOf(ip: string): string {
  if (ip === '') return '0.0.0.0';
  return ip.includes(':') ? `[${ip}]` : ip;
}
