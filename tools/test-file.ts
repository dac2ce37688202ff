import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { run } from 'node:test';
import { spec } from 'node:test/reporters';

/** What became of the tests of one file; those that failed and were skipped by their names. */
export type FileResult = Readonly<{
  file: string;
  passed: number;
  failed: readonly string[];
  skipped: readonly string[];
}>;

export type Run = Readonly<{ print: (said: string) => void; timeoutMs: number }>;

/** What a run tells of all its files: here it is one, of many. */
const OWN_SUMMARY = /^(tests|suites|pass|fail|cancelled|skipped|todo|duration_ms) /;

/** Runs one file in a process of its own, and prints all it said at its end. The time limit is the file's and each test's. */
export async function runTestFile(root: string, file: string, { print, timeoutMs }: Run): Promise<FileResult> {
  const [failed, skipped]: [string[], string[]] = [[], []];
  let passed = 0;
  const events = run({ cwd: root, files: [join(root, file)], timeout: timeoutMs });
  events.on('test:pass', ({ name, details, skip, todo }) => {
    if (details.type === 'suite') return;
    if (skip === undefined && todo === undefined) passed += 1;
    else skipped.push(name);
  });
  events.on('test:fail', ({ name, details }) => {
    if (details.type !== 'suite') failed.push(name);
  });
  print(await text(events.compose(withoutSummary).compose(new spec())));
  return { file, passed, failed, skipped };
}

type TestEvent = { type: string; data: object };

async function* withoutSummary(events: AsyncIterable<TestEvent>): AsyncGenerator<TestEvent> {
  for await (const event of events) if (!isSummary(event)) yield event;
}

function isSummary({ type, data }: TestEvent): boolean {
  return type === 'test:diagnostic' && 'message' in data && OWN_SUMMARY.test(String(data.message));
}
