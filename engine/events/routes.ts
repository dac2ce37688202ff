import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';

import type { Engine } from '../engine.ts';
import { parseFilters, type Filters } from '../http/filters.ts';
import { openStream, type ResponseStream } from '../http/stream.ts';
import { presentEvent } from './present.ts';
import { EventsQuery } from './schema.ts';
import { EVENT_FILTERS, parseTime, passes } from './select.ts';

/** Endpoint 46. */
export const eventRoutes =
  (engine: Engine): FastifyPluginAsyncTypebox =>
  // oxlint-disable-next-line require-await -- a plugin is asynchronous by its type
  async (http) => {
    http.get('/events', {
      schema: { querystring: EventsQuery },
      handler: async (request, reply) => {
        const { since, until, filters: filterText } = request.query;
        const now = engine.clock.now();
        const filters = parseFilters(filterText, EVENT_FILTERS);
        const from = since === undefined || since === '' ? undefined : parseTime('since', since, now);
        const to = until === undefined || until === '' ? undefined : parseTime('until', until, now);
        const cursor = from === undefined ? engine.events.cursor : engine.events.cursorAt(from);
        await sendEvents(engine, openStream(request, reply), cursor, to, filters);
      },
    });
  };

/** Tells everything behind the cursor, then what comes, until the client leaves or `until` is reached. */
async function sendEvents(
  engine: Engine,
  stream: ResponseStream,
  start: number,
  until: Temporal.Instant | undefined,
  filters: Filters,
): Promise<void> {
  let cursor = start;
  let wake = Promise.withResolvers<void>();
  let over = false;
  const rouse = (): void => wake.resolve();
  using _listening = engine.events.listen(rouse);
  stream.signal.addEventListener('abort', rouse);
  using _end =
    until === undefined
      ? undefined
      : engine.clock.after(Math.max(0, engine.clock.now().until(until).total('milliseconds')), () => {
          over = true;
          rouse();
        });
  for (;;) {
    wake = Promise.withResolvers<void>();
    const last = over;
    for (let batch = engine.events.after(cursor); batch.length > 0; batch = engine.events.after(cursor)) {
      cursor = batch.at(-1)!.sequence;
      const wanted = batch.filter(
        (event) => (until === undefined || Temporal.Instant.compare(event.time, until) <= 0) && passes(filters, event),
      );
      if (wanted.length > 0) await stream.write(wanted.map(presentEvent).join(''));
      if (stream.signal.aborted) return;
    }
    if (last || stream.signal.aborted) break;
    await wake.promise;
  }
  stream.end();
}
