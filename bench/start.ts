/** `./gantry bench start [RUNNING] [STOPPED]`: how long the start of a daemon takes that finds many containers. */
import { request } from 'node:http';

import { TestEngine } from '@gantry/testing/test-engine.ts';

import { median } from './measure.ts';

const [DEFAULT_RUNNING, DEFAULT_STOPPED] = [300, 2000];
/** To the first answer after the daemon has been spawned. */
const BUDGET_MS = 1000;
const ROUNDS = 5;
const AT_ONCE = 10;

export async function main(running = String(DEFAULT_RUNNING), stopped = String(DEFAULT_STOPPED)): Promise<void> {
  await using engine = await TestEngine.start();
  const empty = await startTimes(engine);
  console.error(`making ${stopped} stopped and ${running} running containers …`);
  await many(Number(stopped), async () => {
    const id = await engine.run(['true'], { HostConfig: { NetworkMode: 'none' } });
    await engine.wait(id);
  });
  await many(Number(running), async () => void (await engine.run(['sleep', '1000000'])));
  const full = await startTimes(engine);
  const verdict = median(full) <= BUDGET_MS ? 'met' : 'NOT MET';
  console.log(`start without containers: ${shown(empty)}`);
  console.log(
    `start with ${running} running and ${stopped} stopped ones: ${shown(full)}; budget ${BUDGET_MS} ms: ${verdict}`,
  );
  const { body } = await engine.get<object[]>('/containers/json');
  if (body.length !== Number(running)) throw new Error(`${body.length} containers run after the starts`);
  await many(Number(running), async (index) => {
    await engine.delete(`/containers/${(body[index] as { Id: string }).Id}?force=1`);
  });
}

/** Milliseconds from the spawn of a daemon to its first answer. */
async function startTimes(engine: TestEngine): Promise<number[]> {
  const times: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    await engine.kill('SIGKILL');
    const begun = performance.now();
    const answered = firstAnswer(engine.socketPath);
    await engine.startAgain();
    times.push((await answered) - begun);
  }
  return times;
}

/** The time at which GET /_ping is answered, asked again and again until it is. */
async function firstAnswer(socketPath: string): Promise<number> {
  for (;;) {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    request({ socketPath, path: '/_ping', agent: false }, (answer) => {
      answer.resume();
      resolve(answer.statusCode === 200);
    })
      .on('error', () => setTimeout(() => resolve(false), 2))
      .end();
    if (await promise) return performance.now();
  }
}

async function many(count: number, work: (index: number) => Promise<void>): Promise<void> {
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < count) await work(next++);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
}

function shown(times: readonly number[]): string {
  return `${median(times).toFixed(0)} ms (${times.map((time) => time.toFixed(0)).join(', ')})`;
}
