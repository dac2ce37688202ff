import assert from 'node:assert/strict';
import { test } from 'node:test';

import { exitReason, type StateOfRun } from './exit-reason.ts';

const ENDED: StateOfRun = { Status: 'exited', OOMKilled: false, ExitCode: 0, Error: '' };
const NO_LIMITS = { memoryBytes: 0, restartCount: 0 };

const ROWS: readonly (readonly [Partial<StateOfRun>, RegExp])[] = [
  [{}, /^It ended by itself, without an error/],
  [{ ExitCode: 3 }, /with an error \(exit code 3\)/],
  [{ ExitCode: 126 }, /cannot be executed/],
  [{ ExitCode: 127 }, /not found/],
  [{ ExitCode: 137 }, /^SIGKILL ended it/],
  [{ ExitCode: 143 }, /^SIGTERM ended it: it was asked to stop/],
  [{ ExitCode: 139 }, /crashed.*SIGSEGV/],
  [{ ExitCode: 150 }, /^Signal 22 ended it/],
  [{ ExitCode: 255 }, /with an error \(exit code 255\)/],
  [
    { ExitCode: 137, OOMKilled: true },
    /^The kernel killed it, because it needed more memory than what the machine has/,
  ],
  [{ ExitCode: 127, Error: 'exec: "x": not found' }, /^It could not be started: exec: "x": not found/],
  [{ Status: 'created', Error: 'no such port' }, /^It could not be started: no such port/],
  [{ Status: 'created' }, /never started/],
  [{ Status: 'paused' }, /paused/],
  [{ Status: 'running' }, /^It runs\.$/],
  [
    { Status: 'running', Health: { Status: 'unhealthy', FailingStreak: 3, Log: [{ Output: 'refused\n' }] } },
    /^It runs, but its last 3 health checks failed: refused$/,
  ],
];

for (const [state, expected] of ROWS) {
  test(`the reason of ${JSON.stringify(state)} is told in plain words`, () => {
    assert.match(exitReason({ ...ENDED, ...state }, NO_LIMITS), expected);
  });
}

test('the memory limit and restarts are part of the reason', () => {
  const state = { ...ENDED, ExitCode: 137, OOMKilled: true };

  assert.equal(
    exitReason(state, { memoryBytes: 64_000_000, restartCount: 2 }),
    'The kernel killed it, because it needed more memory than its limit of 64.0 MB. It was restarted 2 times.',
  );
});
