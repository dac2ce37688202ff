import assert from 'node:assert/strict';
import { test } from 'node:test';

import { CreateBody, ResizeQuery } from '../../containers/schema.ts';
import { lazyValidator } from './validators.ts';

const REFUSALS: readonly (readonly [body: object, message: string])[] = [
  [{ Tty: 'yes' }, 'invalid body field Tty: must be boolean'],
  [{ Cmd: 5 }, 'invalid body field Cmd: must be string or array'],
  [{ Entrypoint: ['sh', 5] }, 'invalid body field Entrypoint.1: must be string'],
  [{ StopSignal: [] }, 'invalid body field StopSignal: must be string or integer'],
  [{ HostConfig: { Binds: 5 } }, 'invalid body field HostConfig.Binds: must be array'],
  [
    { HostConfig: { Devices: [{ PathOnHost: 5 }] } },
    'invalid body field HostConfig.Devices.0.PathOnHost: must be string',
  ],
];

for (const [body, message] of REFUSALS) {
  test(`${JSON.stringify(body)} is refused: ${message}`, () => {
    const verdict = lazyValidator({ schema: CreateBody, httpPart: 'body' })(body);

    assert.ok(verdict !== true);
    assert.deepEqual([verdict.error.kind, verdict.error.message], ['invalid', message]);
  });
}

test('missing and too large values are named', () => {
  const check = lazyValidator({ schema: ResizeQuery, httpPart: 'querystring' });
  const refused = [{ h: 20 }, { h: 20, w: 70_000 }].map((query) => check(query));

  assert.deepEqual(
    refused.map((verdict) => verdict !== true && verdict.error.message),
    ['invalid querystring: must have required properties w', 'invalid querystring field w: must be <= 65535'],
  );
  assert.equal(check({ h: 20, w: 60 }), true);
});
