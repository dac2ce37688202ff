import assert from 'node:assert/strict';
import { test } from 'node:test';

import type { Clock } from '../../lib/clock.ts';
import type { ContainerState } from '../state.ts';
import type { Container } from '../store.ts';
import { applyRestartPolicy } from './restart-policy.ts';
import { Runs } from './runs.ts';

const ID = 'a'.repeat(64);
const begun = Temporal.Instant.from('2024-01-01T00:00:00Z');

type Ending = Readonly<{ seconds: number; exitCode?: number; ran?: boolean }>;

/** A container that ends again and again, in a time that the test makes. */
class Ends {
  readonly delays: number[] = [];
  readonly #clock: Clock = {
    now: () => begun,
    after: (milliseconds) => {
      this.delays.push(milliseconds);
      return { [Symbol.dispose]: () => undefined };
    },
  };
  readonly #containers = {
    get: (): Container => this.container,
    change: (_id: string, edit: (current: Container) => Container): Container => {
      this.container = edit(this.container);
      return this.container;
    },
  };
  readonly #runs = new Runs({ clock: this.#clock, containers: this.#containers });
  container: Container;

  constructor(Name: string, MaximumRetryCount = 0) {
    const hostConfig = { RestartPolicy: { Name, MaximumRetryCount } };
    this.container = { id: ID, hostConfig, stoppedByUser: false, restartCount: 0 } as unknown as Container;
  }

  /** A run of so many seconds has ended, or a start of the policy has failed. */
  end({ seconds, exitCode = 1, ran = true }: Ending): this {
    const finishedAt = begun.add({ milliseconds: seconds * 1000 });
    const state: ContainerState = { status: 'exited', exitCode, startedAt: begun, finishedAt };
    this.container = { ...this.container, state };
    const db = { afterCommit: (work: () => void) => work() };
    applyRestartPolicy({ containers: this.#containers, db, runs: this.#runs }, this.container, { ran });
    return this;
  }

  startByUser(): this {
    this.#runs.of(ID).forgetRestarts();
    this.container = { ...this.container, restartCount: 0, stoppedByUser: false };
    return this;
  }
}

const brief: Ending = { seconds: 9.999 };
const steady: Ending = { seconds: 10 };

test('delays double from 100 ms to a minute', () => {
  const ends = new Ends('always');

  for (let run = 0; run < 12; run += 1) ends.end(brief);

  assert.deepEqual(ends.delays, [100, 200, 400, 800, 1600, 3200, 6400, 12_800, 25_600, 51_200, 60_000, 60_000]);
  assert.deepEqual([ends.container.state.status, ends.container.restartCount], ['restarting', 12]);
});

test('a run of ten seconds makes the next delay the first one again', () => {
  const ends = new Ends('unless-stopped').end(brief).end(brief).end(steady).end(brief);

  assert.deepEqual(ends.delays, [100, 200, 100, 200]);
});

test('a start that failed is no run, however long ago the last one was', () => {
  const ends = new Ends('always').end(steady).end({ seconds: 3600, ran: false }).end({ seconds: 3600, ran: false });

  assert.deepEqual(ends.delays, [100, 200, 400]);
});

test('on-failure counts ends and failed starts alike, and a start by a user begins anew', () => {
  const ends = new Ends('on-failure', 2).end(brief).end({ seconds: 0, exitCode: 127, ran: false }).end(brief);
  assert.deepEqual([ends.delays, ends.container.state.status], [[100, 200], 'exited']);

  ends.startByUser().end(brief);

  assert.deepEqual([ends.delays, ends.container.restartCount], [[100, 200, 100], 1]);
});

for (const [Name, exitCode, stoppedByUser, again] of [
  ['no', 1, false, false],
  ['', 1, false, false],
  ['always', 0, false, true],
  ['always', 1, true, false],
  ['unless-stopped', 0, false, true],
  ['unless-stopped', 1, true, false],
  ['on-failure', 0, false, false],
  ['on-failure', 1, false, true],
  ['on-failure', 1, true, false],
] as const) {
  const how = stoppedByUser ? 'ended by a user' : `ended with ${exitCode}`;
  test(`the policy '${Name}' ${again ? 'starts' : 'does not start'} a container that was ${how}`, () => {
    const ends = new Ends(Name);
    ends.container = { ...ends.container, stoppedByUser };

    ends.end({ seconds: 1, exitCode });

    assert.deepEqual([ends.delays, ends.container.state.status], again ? [[100], 'restarting'] : [[], 'exited']);
  });
}
