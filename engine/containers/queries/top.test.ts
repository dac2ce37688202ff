import assert from 'node:assert/strict';
import { test } from 'node:test';

import { chooseProcesses } from './top.ts';

const OUTPUT = `UID        PID  PPID CMD
root         1     0 /sbin/init
root        42     1 sh -c  sleep 5
root       421     1 other
`;

test('only the processes of the container are shown, commands whole', () => {
  assert.deepEqual(chooseProcesses(OUTPUT, new Set([42])), {
    Titles: ['UID', 'PID', 'PPID', 'CMD'],
    Processes: [['root', '42', '1', 'sh -c sleep 5']],
  });
});

test('a list without process ids cannot be used', () => {
  assert.throws(() => chooseProcesses('UID CMD\nroot init\n', new Set([1])), { kind: 'failed' });
});
