import assert from 'node:assert/strict';
import { suite, test } from 'node:test';

import type { Clock } from '../../lib/clock.ts';
import { Background } from '../../lib/concurrency/background.ts';
import type { ContainerStore } from '../store.ts';
import type { Usage } from './sample.ts';
import type { Samplers } from './samplers.ts';
import { UsageHistory } from './usage-history.ts';

const INTERVAL_MS = 30_000;
const HOUR_READINGS = 120;

/** A clock that stands still until it is moved. */
class HeldClock implements Clock {
  #now = Temporal.Instant.from('2026-01-01T00:00:00Z');
  readonly #due = new Set<{ at: Temporal.Instant; callback: () => void }>();

  now(): Temporal.Instant {
    return this.#now;
  }

  after(milliseconds: number, callback: () => void): Disposable {
    const timer = { at: this.#now.add({ milliseconds }), callback };
    this.#due.add(timer);
    return { [Symbol.dispose]: () => this.#due.delete(timer) };
  }

  /** Moves the time, and lets the work that is due then run. */
  async pass(milliseconds: number): Promise<void> {
    this.#now = this.#now.add({ milliseconds });
    for (const timer of this.#due) {
      if (Temporal.Instant.compare(timer.at, this.#now) > 0) continue;
      this.#due.delete(timer);
      timer.callback();
    }
    await new Promise(setImmediate);
  }
}

/** Running containers by id, with the CPU time of each. */
function historyOf(running: Map<string, number>): { history: UsageHistory; clock: HeldClock } {
  const clock = new HeldClock();
  const background = new Background(clock, { error: (details) => assert.fail(JSON.stringify(details)) });
  const state = { status: 'running' };
  const containers = {
    all: () => [...running.keys()].map((id) => ({ id, state })),
    get: (id: string) => (running.has(id) ? { id, state } : undefined),
  } as unknown as ContainerStore;
  const samplers = { one: (id: string) => ({ usage: usageOf(running.get(id)!) }) } as unknown as Samplers;
  return { history: new UsageHistory({ background, clock, containers, samplers }), clock };
}

function usageOf(cpuNs: number): Usage {
  return {
    cgroup: {
      cpu: { totalNs: cpuNs },
      memory: { usageBytes: 10, limitBytes: Infinity, counters: {} },
      pids: { current: 1 },
      io: { bytes: [] },
    },
    machine: { memoryBytes: 100 },
    interfaces: [{ rxBytes: 3, txBytes: 4 }],
  } as unknown as Usage;
}

suite('usage of the last hour', () => {
  test('readings are recorded every 30 seconds while somebody may look, with all counters', async () => {
    const running = new Map([['web', 1000]]);
    const { history, clock } = historyOf(running);
    assert.deepEqual(history.of('web').Lines, []);
    const recording = history.record();
    running.set('web', 3000);
    await clock.pass(INTERVAL_MS);
    recording[Symbol.dispose]();
    await clock.pass(INTERVAL_MS);

    const { Interval, Lines } = history.of('web');

    assert.equal(Interval, 30);
    assert.deepEqual(
      Lines.map(({ Read }) => Read),
      ['2026-01-01T00:00:00Z', '2026-01-01T00:00:30Z'],
    );
    assert.deepEqual(Lines[1]!.Containers, [
      {
        Id: 'web',
        CPU: 3000,
        Memory: 10,
        MemoryLimit: 100,
        NetworkReceived: 3,
        NetworkSent: 4,
        BlockRead: 0,
        BlockWritten: 0,
        PIDs: 1,
      },
    ]);
  });

  test('an hour is kept, and a removed container is forgotten', async () => {
    const running = new Map([['web', 1]]);
    const { history, clock } = historyOf(running);
    using _recording = history.record();
    for (let turn = 0; turn < HOUR_READINGS * 2; turn += 1) await clock.pass(INTERVAL_MS);

    const { Lines } = history.of('web');
    running.clear();
    await clock.pass(INTERVAL_MS);

    assert.equal(Lines.length, HOUR_READINGS);
    assert.equal(Lines.at(-1)!.Read, '2026-01-01T02:00:00Z');
    assert.deepEqual(history.of('web').Lines, []);
  });

  test('of too many containers the first ones are recorded', async () => {
    const running = new Map(Array.from({ length: 2100 }, (_, index) => [`c${index}`, 1] as const));
    const { history, clock } = historyOf(running);
    using _recording = history.record();
    await clock.pass(INTERVAL_MS);
    await clock.pass(INTERVAL_MS);

    assert.ok(history.of('c0').Lines.length > 0);
    assert.deepEqual(history.of('c2050').Lines, []);
  });
});
