import type { EventMessage } from '@gantry/client/system.ts';
import type { JSX } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';

import { onEvents } from '../api/engine-events.ts';
import { open } from '../api/request.ts';
import { bytesOf, jsonLines } from '../api/streams.ts';
import { hrefOf } from '../app/route.ts';
import { attempt } from '../parts/notices.tsx';
import { VirtualRows } from '../parts/virtual-rows.tsx';
import { Timeline } from './timeline.tsx';

const ROW_HEIGHT = 34;
const MAX_EVENTS = 20_000;
const PAST = '24h';
/** Values of `Type`; an empty one is for all. */
const KINDS = [
  ['', 'All'],
  ['container', 'Containers'],
  ['image', 'Images'],
  ['network', 'Networks'],
  ['volume', 'Volumes'],
] as const;

/** The stored events of the last day, and new ones. */
export function EventsScreen(): JSX.Element {
  const scroller = useRef<HTMLDivElement>(null);
  const [search, setSearch] = useState('');
  const [kind, setKind] = useState('');
  const [hasExecs, setHasExecs] = useState(false);
  const [events, setEvents] = useState<readonly EventMessage[]>([]);
  useEffect(() => {
    let isCurrent = true;
    void attempt(async () => {
      const past = await pastEvents();
      if (!isCurrent) return;
      setEvents((now) => {
        const known = new Set(now.map(({ timeNano }) => timeNano));
        return [...past.filter(({ timeNano }) => !known.has(timeNano)), ...now];
      });
    });
    const leave = onEvents({ onEvent: (event) => setEvents((before) => [...before.slice(1 - MAX_EVENTS), event]) });
    return () => {
      isCurrent = false;
      leave();
    };
  }, []);
  const shown = useMemo(() => {
    const words = search.toLowerCase().split(/\s+/);
    const fits = (event: EventMessage): boolean =>
      (kind === '' || event.Type === kind) &&
      (hasExecs || !event.Action.startsWith('exec_')) &&
      words.every((word) => textOf(event).includes(word));
    return events.filter(fits).toReversed();
  }, [events, search, kind, hasExecs]);
  const showSince = (time: number): void => {
    const at = shown.findIndex((event) => event.time < time);
    scroller.current?.scrollTo({ top: Math.max(0, (at === -1 ? shown.length : at) - 1) * ROW_HEIGHT });
  };
  return (
    <section class="screen">
      <div class="bar">
        <h1>Events</h1>
        <input
          type="search"
          placeholder="Search  /"
          aria-label="Search events"
          value={search}
          onInput={(event) => setSearch(event.currentTarget.value)}
        />
        <div class="choice" role="group" aria-label="Kinds">
          {KINDS.map(([value, word]) => (
            <button key={value} type="button" aria-pressed={kind === value} onClick={() => setKind(value)}>
              {word}
            </button>
          ))}
        </div>
        <button type="button" aria-pressed={hasExecs} onClick={() => setHasExecs(!hasExecs)}>
          Execs and health checks
        </button>
        <span class="soft">
          {shown.length} of {events.length} of the last day
        </span>
      </div>
      <Timeline events={shown} choose={showSince} />
      <div class="scroller" ref={scroller} tabIndex={0} role="region" aria-label="Events">
        <table class="rows">
          <thead>
            <tr>
              <th class="time">Time</th>
              <th class="kind middle">Kind</th>
              <th>Event</th>
              <th>Object</th>
              <th class="wide">More</th>
            </tr>
          </thead>
          <VirtualRows scroller={scroller} rows={shown} rowHeight={ROW_HEIGHT}>
            {(event, index) => <EventRow key={`${event.timeNano} ${index}`} event={event} />}
          </VirtualRows>
        </table>
      </div>
    </section>
  );
}

function EventRow({ event: { Type, Action, Actor, time } }: { event: EventMessage }): JSX.Element {
  const { name, image, exitCode } = Actor.Attributes;
  const more = [image, exitCode === undefined ? undefined : `exit code ${exitCode}`].filter((one) => one !== undefined);
  const label = name ?? Actor.ID;
  return (
    <tr>
      <td class="time">{timeOf(new Date(time * 1000))}</td>
      <td class="kind middle">{Type}</td>
      <td>
        <bdi>{Action}</bdi>
      </td>
      <td title={Actor.ID}>
        {Type === 'container' ? (
          <a class="row-link" href={hrefOf('containers', Actor.ID)}>
            <bdi>{label}</bdi>
          </a>
        ) : (
          <bdi>{label}</bdi>
        )}
      </td>
      <td class="wide">
        <bdi>{more.join(', ')}</bdi>
      </td>
    </tr>
  );
}

/** The time of the day; with the date unless it is today. */
function timeOf(time: Date): string {
  const isToday = time.toDateString() === new Date().toDateString();
  return isToday ? time.toLocaleTimeString() : time.toLocaleString();
}

async function pastEvents(): Promise<EventMessage[]> {
  const query = { since: PAST, until: '0s' };
  const past: EventMessage[] = [];
  for await (const event of jsonLines<EventMessage>(bytesOf(await open('GET', '/events', { query })))) past.push(event);
  return past.slice(-MAX_EVENTS);
}

function textOf({ Type, Action, Actor }: EventMessage): string {
  return `${Type} ${Action} ${Actor.ID} ${Object.values(Actor.Attributes).join(' ')}`.toLowerCase();
}
