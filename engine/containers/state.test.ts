import assert from 'node:assert/strict';
import { test } from 'node:test';

import { isAllowedStep, exitCodeOf, isAlive, transition, type ContainerState, type Status } from './state.ts';

const statuses = [
  'created',
  'starting',
  'running',
  'paused',
  'stopping',
  'restarting',
  'exited',
  'removing',
] as const satisfies Status[];

const steps = new Set([
  'created starting',
  'created removing',
  'starting running',
  'starting created',
  'starting exited',
  'starting restarting',
  'running paused',
  'running stopping',
  'running exited',
  'paused running',
  'paused stopping',
  'paused exited',
  'stopping exited',
  'restarting starting',
  'restarting exited',
  'exited starting',
  'exited restarting',
  'exited removing',
]);

for (const from of statuses) {
  for (const to of statuses) {
    const expected = steps.has(`${from} ${to}`);
    test(`the step from ${from} to ${to} is ${expected ? 'allowed' : 'refused'}`, () => {
      assert.equal(isAllowedStep(from, to), expected);
    });
  }
}

test('a step that does not exist is a conflict', () => {
  assert.throws(() => transition({ status: 'removing', exitCode: 0 }, { status: 'created', exitCode: 0 }), {
    kind: 'conflict',
  });
});

test('a failed start shows its code although the container never ran', () => {
  const state: ContainerState = { status: 'starting', from: { status: 'created', exitCode: 127 } };

  assert.equal(exitCodeOf(state), 127);
  assert.equal(isAlive(state), false);
});
