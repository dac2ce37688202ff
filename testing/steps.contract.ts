import assert from 'node:assert/strict';
import { test } from 'node:test';

import { errorStatus, type ErrorStatuses } from '@gantry/engine/http/errors.ts';
import type { ApiVersion } from '@gantry/engine/http/versions/api-version.ts';
import { downgradedAnswer, statusFor, stepsFor, upgradedBody, type Steps } from '@gantry/engine/http/versions/steps.ts';
import { EngineError, type ErrorKind } from '@gantry/engine/lib/errors.ts';

type Change = { now: unknown; older: unknown };
/** The result of a step for a request, an answer, or the status 200, for a client just under `below`. */
type StepCase = { below: ApiVersion; request?: Change; response?: Change; status?: number };
type StatusCase = { kind: ErrorKind; below: ApiVersion; now: number; older: number };

/** Every step of a list, at the version of its change and just under it; one without a case fails. */
export function testSteps(name: string, steps: Steps, cases: readonly StepCase[]): void {
  test(`${name}: every step has a case`, () => {
    assert.deepEqual(
      cases.map(({ below }) => below),
      steps.map(({ below }) => below),
    );
  });
  for (const [index, { below, request, response, status }] of cases.entries()) {
    const step = [steps[index]!];
    const [now, older] = [below, under(below)].map((apiVersion) => stepsFor(step, { apiVersion, isNamed: true }));
    test(`${name} at ${below} and just under it`, () => {
      assert.deepEqual([now, older], [[], step]);
      assert.equal(step[0]?.request === undefined, request === undefined);
      assert.equal(step[0]?.response === undefined, response === undefined);
      assert.equal(statusFor(older!, 200), status ?? 200);
      if (request !== undefined) assert.deepEqual(upgradedBody(older!, request.now), request.older);
      if (response !== undefined) assert.deepEqual(downgradedAnswer(older!, response.now), response.older);
    });
  }
}

/** Tests the steps of statuses of errors. */
export function testErrorStatuses(name: string, statuses: ErrorStatuses, cases: readonly StatusCase[]): void {
  test(`${name}: every kind has a case`, () => {
    assert.deepEqual(
      cases.map(({ kind }) => kind),
      Object.keys(statuses),
    );
  });
  for (const { kind, below, now, older } of cases) {
    test(`${name}: ${kind} at ${below} and just under it`, () => {
      const error = new EngineError(kind, 'so it is');
      assert.deepEqual([errorStatus(error, below, statuses), errorStatus(error, under(below), statuses)], [now, older]);
    });
  }
}

function under(version: ApiVersion): ApiVersion {
  return `1.${Number(version.slice(2)) - 1}`;
}
