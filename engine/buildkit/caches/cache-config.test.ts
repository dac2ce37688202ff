import assert from 'node:assert/strict';
import { test } from 'node:test';

import { formatCache, parseCache, type CacheLayer } from './cache-config.ts';

const BLOB = `sha256:${'a'.repeat(64)}`;
const layer: CacheLayer = { blob: BLOB, parent: -1, annotations: { diffID: BLOB, size: 3 } };
const createdAt = '2026-01-02T03:04:05.123456789Z';

test('a cache is read as it was written', () => {
  const steps = [
    { key: 'sha256:1', parent: 'sha256:0', createdAt, layer },
    { key: 'sha256:2', parent: 'sha256:1', createdAt, layer: undefined },
  ];

  const text = formatCache([layer], steps);

  assert.deepEqual(
    parseCache(text),
    steps.map(({ parent: _none, ...step }) => step),
  );
  const { records } = JSON.parse(text) as { records: { inputs?: unknown }[] };
  assert.deepEqual(records[1]!.inputs, [[{ link: 0 }]]);
});

test('the records of other builders are left out, and those without a time or a layer', () => {
  const records = [
    { digest: 'random:x', layers: null, chains: null },
    { layers: [{ layer: 0, createdAt }] },
    { digest: 'sha256:1', layers: [{ layer: 7, createdAt }] },
    { digest: 'sha256:2', layers: [{ layer: 0, createdAt: 'yesterday' }] },
  ];
  assert.deepEqual(parseCache(JSON.stringify({ layers: [layer], records })), []);
  assert.deepEqual(parseCache('{"layers":null}'), []);
});

const REFUSED: readonly (readonly [string, string, RegExp])[] = [
  ['text that is no JSON', '{"layers": [', /it is not JSON/],
  ['deep nesting', '['.repeat(1000), /nested deeper/],
  ['too many records', JSON.stringify({ records: Array.from({ length: 10_001 }, () => ({})) }), /\/records/],
  ['too many layers', JSON.stringify({ layers: Array.from({ length: 1001 }, () => layer) }), /\/layers/],
  ['a place below 0', '{"records": [{"digest": "sha256:1", "layers": [{"layer": -1}]}]}', /\/records/],
  ['a blob without a digest', '{"layers": [{"blob": "../../x"}]}', /\/layers/],
];
for (const [name, text, message] of REFUSED) {
  test(`${name} is refused`, () => {
    assert.throws(() => parseCache(text), message);
  });
}
