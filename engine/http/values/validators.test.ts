import assert from 'node:assert/strict';
import { test } from 'node:test';

import { CreateBody, ResizeQuery } from '../../containers/schema.ts';
import { RouteValidator } from './validators.ts';

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
    const validator = new RouteValidator({ body: CreateBody });

    assert.throws(() => validator.check({ params: {}, query: {}, body }), { kind: 'invalid', message });
  });
}

test('missing and too large values are named', () => {
  const validator = new RouteValidator({ querystring: ResizeQuery });
  const check = (query: object) => () => validator.check({ params: {}, query, body: undefined });

  assert.throws(check({ h: 20 }), { message: 'invalid querystring: must have required properties w' });
  assert.throws(check({ h: 20, w: 70_000 }), { message: 'invalid querystring field w: must be <= 65535' });
  assert.doesNotThrow(check({ h: 20, w: 60 }));
});
