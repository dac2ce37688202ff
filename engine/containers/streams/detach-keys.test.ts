import assert from 'node:assert/strict';
import { test } from 'node:test';

import { EngineError } from '../../lib/errors.ts';
import { DetachDetector, parseDetachKeys } from './detach-keys.ts';

test('detach keys are read as docker writes them', async (t) => {
  const cases: [string | undefined, number[]][] = [
    [undefined, [16, 17]],
    ['', [16, 17]],
    ['ctrl-a', [1]],
    ['ctrl-z,q', [26, 113]],
    ['ctrl-@', [0]],
    ['ctrl-[,ctrl-\\,ctrl-],ctrl-^,ctrl-_', [27, 28, 29, 30, 31]],
    ['ctrl-,', [12]],
    ['ctrl-,,a', [12, 97]],
    ['1', [49]],
    ['a,b,c', [97, 98, 99]],
    ['A', [65]],
  ];
  for (const [written, expected] of cases) {
    await t.test(JSON.stringify(written ?? null), () => {
      const keys = parseDetachKeys(written);

      assert.deepEqual([...keys], expected);
    });
  }
});

test('other detach keys are refused', async (t) => {
  for (const written of ['invalid', 'ctrl-A', 'ctrl-', 'ctrl', 'a,', 'a,,b', ',', 'é', 'ctrl-p ctrl-q', 'ctrl-pq']) {
    await t.test(written, () => {
      assert.throws(
        () => parseDetachKeys(written),
        (error) => error instanceof EngineError && error.kind === 'invalid' && error.message.includes(written),
      );
    });
  }
});

test('the keys are found however the bytes are cut, and everything else is passed on', async (t) => {
  const cases: [string, string[], string, boolean][] = [
    ['x,y', ['abc'], 'abc', false],
    ['x,y', ['abxyc'], 'ab', true],
    ['x,y', ['abx', 'yc'], 'ab', true],
    ['x,y', ['abx', 'c'], 'abxc', false],
    ['x,y', ['x', 'x', 'y'], 'x', true],
    ['x,y', ['xx'], 'xx', false],
    ['x,x,y', ['xx', 'xy'], 'x', true],
    ['x,x,y', ['x', 'x', 'x', 'x', 'z'], 'xxxxz', false],
    ['x', ['ab', 'x'], 'ab', true],
    ['x,y', ['', 'x', '', 'y'], '', true],
  ];
  for (const [keys, pieces, expected, detaches] of cases) {
    await t.test(`${keys} in ${pieces.join('|')}`, () => {
      const detector = new DetachDetector(parseDetachKeys(keys));
      let passed = '';

      const detached = pieces.some((piece) => {
        const result = detector.push(Buffer.from(piece));
        passed += result.passed.toString();
        return result.detached;
      });
      if (!detached) passed += detector.flush().toString();

      assert.deepEqual({ passed, detached }, { passed: expected, detached: detaches });
    });
  }
});
