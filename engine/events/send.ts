import type { Engine } from '../engine.ts';
import type { ResponseStream } from '../http/streams/stream.ts';
import type { Filters } from '../http/values/filters.ts';
import { Slices } from '../lib/concurrency/slices.ts';
import type { EngineEvent } from './events.ts';
import { presentEvent } from './present.ts';
import { passes } from './select.ts';
import type { EventForm } from './versions.ts';

type Wanted = Readonly<{
  cursor: number;
  until: Temporal.Instant | undefined;
  filters: Filters;
  /** The events as clients of the request's version know them. */
  form: EventForm;
  /** A byte before each line: the separator of JSON text sequences, or none. */
  separator: '' | typeof RECORD_SEPARATOR;
}>;

type Needs = Pick<Engine, 'clock' | 'events'>;

/** RFC 7464. */
export const RECORD_SEPARATOR = '\u001e';

/** Lines of events, made once for all listeners: with the old fields, and without them. */
const LINES = { old: new WeakMap<EngineEvent, string>(), plain: new WeakMap<EngineEvent, string>() };

/**
 * Sends all events behind the cursor, then new ones, until the client leaves or `until` is reached. Only one batch is
 * in memory: the next one is read from the table when the client has taken it. A client that is so slow that its next
 * events are no longer kept is dropped: it would miss events without noticing.
 */
export async function sendEvents(
  engine: Needs,
  stream: ResponseStream,
  { cursor: start, until, filters, form, separator }: Wanted,
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
  const slices = new Slices(); // a client that reads as fast as it is sent to gives nobody else a turn
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
        .flatMap((event) => form.view(event) ?? [])
        .filter((event) => passes(filters, event));
      if (wanted.length > 0) await stream.write(wanted.map((event) => separator + lineOf(event, form)).join(''));
      if (slices.isOver) await slices.pause();
      if (stream.signal.aborted) return;
    }
    if (last || stream.signal.aborted) break;
    await wake.promise;
  }
  stream.end();
}

function lineOf(event: EngineEvent, form: EventForm): string {
  const lines = form.hasOldFields ? LINES.old : LINES.plain;
  let line = lines.get(event);
  if (line === undefined) lines.set(event, (line = presentEvent(event, form)));
  return line;
}
