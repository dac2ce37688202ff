import type { Engine } from '../engine.ts';
import type { AddRoutes } from '../http/route-table.ts';
import { acceptedType } from '../http/streams/accepted-type.ts';
import { openStream } from '../http/streams/stream.ts';
import { parseFilters } from '../http/values/filters.ts';
import { parseTime } from '../http/values/times.ts';
import { EngineError } from '../lib/errors.ts';
import { EventMessage, EventsQuery } from './schema.ts';
import { EVENT_FILTERS } from './select.ts';
import { RECORD_SEPARATOR, sendEvents } from './send.ts';
import { eventForm } from './versions.ts';

const JSON_SEQUENCE = 'application/json-seq';
/** Forms of the answer that a client can ask for; they count at all versions, as in dockerd. */
const RECORD_TYPES = ['application/jsonl', 'application/x-ndjson', JSON_SEQUENCE] as const;

/** Endpoint 46. */
export const eventRoutes =
  (engine: Engine): AddRoutes =>
  (http) => {
    http.get('/events', {
      schema: { querystring: EventsQuery, response: { 200: EventMessage } },
      handler: async (request, reply) => {
        const { since = '', until = '', filters: filterText } = request.query;
        const now = engine.clock.now();
        const filters = parseFilters(filterText, EVENT_FILTERS);
        const from = since === '' ? undefined : parseTime('since', since, now);
        const to = until === '' ? undefined : parseTime('until', until, now);
        if (from !== undefined && to !== undefined && Temporal.Instant.compare(from, to) > 0) {
          throw new EngineError('invalid', `\`since\` time (${since}) cannot be after \`until\` time (${until})`);
        }
        // `until` without `since` asks for all events before it.
        const cursor =
          from !== undefined
            ? engine.events.cursorAt(from)
            : to === undefined
              ? engine.events.cursor
              : engine.events.start;
        const form = eventForm(request.apiVersion);
        const contentType = acceptedType(request.headers.accept, RECORD_TYPES) ?? form.contentType;
        const separator = contentType === JSON_SEQUENCE ? RECORD_SEPARATOR : '';
        const stream = openStream(reply, { contentType });
        await sendEvents(engine, stream, { cursor, until: to, filters, form, separator });
      },
    });
  };
