import { filledLines } from '@gantry/client/json-lines.ts';
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
    filter: { kind: 'list', short: 'f', value: 'KEY=VALUE', help: 'Only matching ones' },
    format: { kind: 'text', value: 'FORMAT', help: 'json, or a template such as {{.Type}} {{.Action}} {{.ID}}' },
    since: {
      kind: 'text',
      value: 'TIME',
      help: 'From this time on: a date, UNIX seconds, or how long ago, such as 10m',
    },
    until: { kind: 'text', value: 'TIME', help: 'Up to this time' },
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
    for await (const line of filledLines(stream)) {
      const event = JSON.parse(line) as system.EventMessage;
      const nanoseconds = nanosecondsOf(line);
      if (format === undefined || format === '') console.log(visible(eventText(event, nanoseconds)));
      else await printObject(forTemplates(event, nanoseconds), format);
    }
  },
});

/** Nanoseconds of an event's JSON: the number has more digits than JSON.parse keeps. */
function nanosecondsOf(line: string): bigint {
  // The last one: attributes, which people name, stand before it.
  return BigInt(/.*"timeNano":\s*(\d+)/.exec(line)![1]!);
}

/** The event with the names that docker's templates have for what JSON writes in small letters. */
function forTemplates(event: system.EventMessage, nanoseconds: bigint): object {
  const { status = '', id = '', from = '', scope, time } = event;
  const named = { Status: status, ID: id, From: from, Scope: scope, Time: time, TimeNano: String(nanoseconds) };
  const toJSON = (): object => ({ ...event, timeNano: JSON.rawJSON(String(nanoseconds)) });
  return Object.defineProperties(
    { ...event },
    Object.fromEntries(Object.entries({ ...named, toJSON }).map(([name, value]) => [name, { value }])),
  );
}

function eventText({ Type, Action, Actor }: system.EventMessage, nanoseconds: bigint): string {
  const at = Temporal.Instant.fromEpochNanoseconds(nanoseconds).toZonedDateTimeISO(Temporal.Now.timeZoneId());
  const zone = at.offsetNanoseconds === 0 ? 'Z' : at.offset;
  const time = `${at.toPlainDateTime().toString({ smallestUnit: 'nanosecond' })}${zone}`;
  const attributes = Object.entries(Actor.Attributes)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, value]) => `${name}=${value}`);
  return `${time} ${Type} ${Action} ${Actor.ID} (${attributes.join(', ')})`;
}
