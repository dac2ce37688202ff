import { Readable } from 'node:stream';
import { spec, type TestEvent } from 'node:test/reporters';

/** Lines about a whole run: here a run is one file of many. */
const OWN_SUMMARY = /^(tests|suites|pass|fail|cancelled|skipped|todo|duration_ms) /;

/** Node's reporter `spec` without its counts. */
export default async function* report(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  yield* Readable.from(withoutSummary(events)).compose(new spec());
}

async function* withoutSummary(events: AsyncIterable<TestEvent>): AsyncGenerator<TestEvent> {
  for await (const event of events) if (!isSummary(event)) yield event;
}

function isSummary({ type, data }: TestEvent): boolean {
  return type === 'test:diagnostic' && OWN_SUMMARY.test(data.message);
}
