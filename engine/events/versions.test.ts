import assert from 'node:assert/strict';
import { test } from 'node:test';

import type { EngineEvent } from './events.ts';
import { eventForm } from './versions.ts';

const event = (type: EngineEvent['type'], action: string): EngineEvent => ({
  ...{ type, action, sequence: 1, id: 'a', attributes: {} },
  time: Temporal.Instant.from('2026-01-01T00:00:00Z'),
});

for (const action of ['archive-path', 'extract-to-dir']) {
  test(`${action} is copy at 1.24, and itself from 1.25 on`, () => {
    const stored = event('container', action);
    const [at12, at24, at25] = (['1.12', '1.24', '1.25'] as const).map((version) => eventForm(version).view(stored));

    assert.equal(at24?.action, 'copy');
    assert.equal(at24, at12, 'lines are made once for each event');
    assert.equal(at25, stored);
  });
}

test('other events are the same at all versions', () => {
  for (const stored of [
    event('container', 'die'),
    event('image', 'archive-path'),
    event('container', 'create'),
    event('volume', 'create'),
  ])
    for (const version of ['1.24', '1.45', '1.52'] as const) assert.equal(eventForm(version).view(stored), stored);
});

test('the creation of an image is an event from 1.46 on', () => {
  const stored = event('image', 'create');

  const views = (['1.24', '1.45', '1.46', '1.55'] as const).map((version) => eventForm(version).view(stored));

  assert.deepEqual(views, [undefined, undefined, stored, stored]);
});

test('the old fields end with 1.52, which is JSON Lines', () => {
  const forms = (['1.24', '1.51', '1.52'] as const).map((version) => eventForm(version));

  assert.deepEqual(
    forms.map(({ hasOldFields, contentType }) => [hasOldFields, contentType]),
    [
      [true, 'application/json'],
      [true, 'application/json'],
      [false, 'application/jsonl'],
    ],
  );
});
