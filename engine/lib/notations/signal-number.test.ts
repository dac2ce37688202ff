import assert from 'node:assert/strict';
import { test } from 'node:test';

import { signalNumber } from './signal-number.ts';

const cases: [string, number][] = [
  ['KILL', 9],
  ['SIGKILL', 9],
  ['sigterm', 15],
  ['9', 9],
  ['CLD', 17],
  ['RTMIN', 34],
  ['SIGRTMIN+3', 37],
  ['RTMAX', 64],
  ['RTMAX-1', 63],
];

for (const [written, number] of cases) {
  test(`the signal ${written} is ${number}`, () => {
    assert.equal(signalNumber(written), number);
  });
}

for (const written of ['', '0', '65', '-9', 'NONE', 'RTMIN-1', 'RTMAX+1', 'KILL9', 'SIG42', 'sig9', ' KILL']) {
  test(`the signal "${written}" is refused`, () => {
    assert.throws(() => signalNumber(written), { kind: 'invalid' });
  });
}
