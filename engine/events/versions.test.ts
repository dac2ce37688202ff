import assert from 'node:assert/strict';
import { test } from 'node:test';

import type { EngineEvent } from './events.ts';
import { eventView } from './versions.ts';

const event = (type: EngineEvent['type'], action: string): EngineEvent => ({
  ...{ type, action, sequence: 1, id: 'a', attributes: {} },
  time: Temporal.Instant.from('2026-01-01T00:00:00Z'),
});

for (const action of ['archive-path', 'extract-to-dir']) {
  test(`${action} is copy at 1.24, and itself from 1.25 on`, () => {
    const stored = event('container', action);

    assert.equal(eventView('1.24')(stored).action, 'copy');
    assert.equal(eventView('1.24')(stored), eventView('1.12')(stored), 'lines are made once for each event');
    assert.equal(eventView('1.25')(stored), stored);
  });
}

test('other events are the same at all versions', () => {
  for (const stored of [event('container', 'die'), event('image', 'archive-path')])
    assert.equal(eventView('1.24')(stored), stored);
});
