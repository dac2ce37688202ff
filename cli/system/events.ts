import { jsonLines } from '@gantry/client/json-lines.ts';
import * as system from '@gantry/client/system.ts';

import { command } from '../command-line/command.ts';
import { filtersOf, timeOf } from '../command-line/values.ts';
import { visible } from '../output/escape.ts';
import { printObject } from '../output/format.ts';

/** `gantry events`. */
export const events = command({
  words: '',
  count: [0, 0],
  flags: {
    filter: { kind: 'list', short: 'f', value: 'KEY=VALUE', help: 'Only what matches' },
    format: { kind: 'text', value: 'FORMAT', help: 'json, or a template such as {{.Type}} {{.Action}}' },
    since: { kind: 'text', value: 'TIME', help: 'From then on: a date, UNIX seconds, or how long ago, such as 10m' },
    until: { kind: 'text', value: 'TIME', help: 'Up to then' },
  },
  examples: [
    'gantry events --since 10m --filter type=container',
    "gantry events --format '{{.Action}} {{.Actor.Attributes.name}}'",
  ],
  run: async ({ connection }, _words, { filter, format, since, until }) => {
    const stream = await system.events(connection, {
      since: timeOf(since),
      until: timeOf(until),
      filters: filtersOf(filter),
    });
    for await (const event of jsonLines<system.EventMessage>(stream)) {
      if (format === undefined) console.log(visible(eventText(event)));
      else await printObject(event, format);
    }
  },
});

function eventText({ Type, Action, Actor, timeNano }: system.EventMessage): string {
  // A JSON number is exact to a quarter of a microsecond here.
  const time = Temporal.Instant.fromEpochNanoseconds(BigInt(Math.trunc(timeNano / 1e3)) * 1000n);
  const attributes = Object.entries(Actor.Attributes)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, value]) => `${name}=${value}`);
  return `${time.toString({ smallestUnit: 'microsecond' })} ${Type} ${Action} ${Actor.ID} (${attributes.join(', ')})`;
}
