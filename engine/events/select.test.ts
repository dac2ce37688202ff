import assert from 'node:assert/strict';
import { test } from 'node:test';

import { parseFilters } from '../http/values/filters.ts';
import type { EngineEvent } from './events.ts';
import { EVENT_FILTERS, passes } from './select.ts';

type Told = Pick<EngineEvent, 'type' | 'action' | 'id' | 'attributes'>;

const started: Told = {
  type: 'container',
  action: 'start',
  id: 'abcdef012345',
  attributes: { name: 'web-1', image: 'shop/web:2', tier: 'front', empty: '' },
};
const executed: Told = { ...started, action: 'exec_start: sh -c true' };
const pulled: Told = { type: 'image', action: 'pull', id: 'sha256:0011', attributes: { name: 'localhost:5000/a:1' } };
const connected: Told = {
  type: 'network',
  action: 'connect',
  id: 'ffee',
  attributes: { name: 'bridge', type: 'bridge', container: 'abcdef012345' },
};
const mounted: Told = { type: 'volume', action: 'mount', id: 'data', attributes: { container: 'abcdef012345' } };
const reloaded: Told = { type: 'daemon', action: 'reload', id: 'd00d', attributes: { name: 'host' } };

for (const [filters, event, expected] of [
  [{}, started, true],
  [{ type: ['container'] }, started, true],
  [{ type: ['image', 'container'] }, started, true],
  [{ type: ['image'] }, started, false],
  [{ event: ['start'] }, started, true],
  [{ event: ['sta'] }, started, false],
  [{ event: ['exec_start'] }, executed, true],
  [{ event: ['exec'] }, executed, false],
  [{ container: ['web-1'] }, started, true],
  [{ container: ['/web-1'] }, started, false],
  [{ container: ['web'] }, started, true],
  [{ container: ['abcdef'] }, started, true],
  [{ container: ['other'] }, started, false],
  [{ container: ['other', 'abc'] }, started, true],
  [{ container: [] }, started, true],
  [{ container: ['web-1'], event: ['stop'] }, started, false],
  [{ container: ['abcdef012345'] }, connected, false],
  [{ container: ['abcdef012345'] }, mounted, false],
  [{ network: ['bridge'] }, connected, true],
  [{ network: ['ffee'] }, connected, true],
  [{ network: ['bridge'] }, started, false],
  [{ volume: ['data'] }, mounted, true],
  [{ volume: ['data'] }, started, false],
  [{ daemon: ['host'] }, reloaded, true],
  [{ daemon: ['d0'] }, reloaded, true],
  [{ daemon: ['host'] }, started, false],
  [{ image: ['shop/web:2'] }, started, true],
  [{ image: ['shop/web'] }, started, true],
  [{ image: ['shop'] }, started, false],
  [{ image: ['localhost:5000/a'] }, pulled, true],
  [{ image: ['sha256:0011'] }, pulled, true],
  [{ image: ['0011'] }, pulled, true],
  [{ image: ['shop/web'] }, connected, false],
  [{ label: ['tier'] }, started, true],
  [{ label: ['tier=front'] }, started, true],
  [{ label: ['tier=back'] }, started, false],
  [{ label: ['tier', 'empty='] }, started, true],
  [{ label: ['tier', 'owner'] }, started, false],
  [{ scope: ['local'] }, started, true],
  [{ scope: ['swarm'] }, started, false],
  [{ plugin: ['x'] }, started, false],
] as const) {
  test(`${JSON.stringify(filters)} ${expected ? 'shows' : 'hides'} ${event.type} ${event.action}`, () => {
    const told = { ...event, sequence: 1, time: Temporal.Instant.fromEpochMilliseconds(0) };
    assert.equal(passes(parseFilters(JSON.stringify(filters), EVENT_FILTERS), told), expected);
  });
}
