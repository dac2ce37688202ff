import type { EventMessage } from '@gantry/client/system.ts';
import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';

import { onEvents } from '../api/engine-events.ts';
import { open } from '../api/request.ts';
import { bytesOf, jsonLines } from '../api/streams.ts';
import { hrefOf } from '../app/route.ts';
import { attempt } from '../parts/notices.tsx';
import { VirtualRows } from '../parts/virtual-rows.tsx';

const ROW_HEIGHT = 30;
const MAX_EVENTS = 20_000;
const PAST = '24h';

/** The stored events of the last day, and new ones. */
export function EventsScreen(): JSX.Element {
  const scroller = useRef<HTMLDivElement>(null);
  const [search, setSearch] = useState('');
  const [events, setEvents] = useState<readonly EventMessage[]>([]);
  useEffect(() => {
    let isCurrent = true;
    void attempt(async () => {
      const past = await pastEvents();
      if (isCurrent)
        setEvents((now) => [...past.filter(({ timeNano }) => !now.some((one) => one.timeNano === timeNano)), ...now]);
    });
    const leave = onEvents({ onEvent: (event) => setEvents((before) => [...before.slice(1 - MAX_EVENTS), event]) });
    return () => {
      isCurrent = false;
      leave();
    };
  }, []);
  const words = search.toLowerCase().split(/\s+/);
  const shown = events.filter((event) => words.every((word) => textOf(event).includes(word))).toReversed();
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
        <span class="soft">
          {shown.length} of {events.length} of the last day
        </span>
      </div>
      <div class="scroller" ref={scroller} tabIndex={0} role="region" aria-label="Events">
        <table class="rows">
          <thead>
            <tr>
              <th class="time">Time</th>
              <th class="kind">Kind</th>
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
      <td class="time">{new Date(time * 1000).toLocaleString()}</td>
      <td class="kind">{Type}</td>
      <td>
        <bdi>{Action}</bdi>
      </td>
      <td title={Actor.ID}>
        {Type === 'container' ? (
          <a href={hrefOf('containers', Actor.ID)}>
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

async function pastEvents(): Promise<EventMessage[]> {
  const query = { since: PAST, until: '0s' };
  const past: EventMessage[] = [];
  for await (const event of jsonLines<EventMessage>(bytesOf(await open('GET', '/events', { query })))) past.push(event);
  return past.slice(-MAX_EVENTS);
}

function textOf({ Type, Action, Actor }: EventMessage): string {
  return `${Type} ${Action} ${Actor.ID} ${Object.values(Actor.Attributes).join(' ')}`.toLowerCase();
}
