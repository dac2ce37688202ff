import type { Engine } from '../engine.ts';
import type { ResponseStream } from '../http/streams/stream.ts';
import type { Filters } from '../http/values/filters.ts';
import type { EngineEvent } from './events.ts';
import { presentEvent } from './present.ts';
import { passes } from './select.ts';

type Wanted = Readonly<{
  cursor: number;
  until: Temporal.Instant | undefined;
  filters: Filters;
  /** The events as clients of the request's version know them. */
  view: (event: EngineEvent) => EngineEvent;
}>;

type Needs = Pick<Engine, 'clock' | 'events'>;

/** Their lines, made once for all listeners. */
const lines = new WeakMap<EngineEvent, string>();

/**
 * Sends all events behind the cursor, then new ones, until the client leaves or `until` is reached. Only one batch is
 * in memory: the next one is read from the table when the client has taken it. A client that is so slow that its next
 * events are no longer kept is dropped: it would miss events without noticing.
 */
export async function sendEvents(
  engine: Needs,
  stream: ResponseStream,
  { cursor: start, until, filters, view }: Wanted,
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
      if (batch[0]!.sequence !== cursor + 1) {
        stream.output.destroy();
        return;
      }
      cursor = batch.at(-1)!.sequence;
      const wanted = batch
        .filter((event) => until === undefined || Temporal.Instant.compare(event.time, until) <= 0)
        .map(view)
        .filter((event) => passes(filters, event));
      if (wanted.length > 0) await stream.write(wanted.map(lineOf).join(''));
      if (stream.signal.aborted) return;
    }
    if (last || stream.signal.aborted) break;
    await wake.promise;
  }
  stream.end();
}

function lineOf(event: EngineEvent): string {
  let line = lines.get(event);
  if (line === undefined) lines.set(event, (line = presentEvent(event)));
  return line;
}
