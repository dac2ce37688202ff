import type { TestEvent } from 'node:test/reporters';

/** The result of one test. Each is a line of JSON, so that the results of a killed process are known. */
export type TestResult = Readonly<{ name: string; as: 'passed' | 'failed' | 'skipped' }>;

/** A reporter of Node's test runner that writes `TestResult`s. */
export default async function* report(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  for await (const event of events) {
    const result = resultOf(event);
    if (result !== undefined) yield `${JSON.stringify(result)}\n`;
  }
}

function resultOf(event: TestEvent): TestResult | undefined {
  if ((event.type !== 'test:pass' && event.type !== 'test:fail') || event.data.details.type === 'suite')
    return undefined;
  const { name, skip, todo } = event.data;
  if (event.type === 'test:fail') return { name, as: 'failed' };
  return { name, as: skip === undefined && todo === undefined ? 'passed' : 'skipped' };
}
