import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';

import { isTooLong } from './argument-space.ts';
import type { ProcessDescription } from './description.ts';

const NOBODY = { uid: 0, gid: 0, additionalGids: [], home: '/', umask: undefined };

function described(args: string[], env: string[] = [], stack?: number): ProcessDescription {
  return {
    args,
    env,
    cwd: '/',
    terminal: false,
    user: NOBODY,
    capabilities: { add: null, drop: null, privileged: false },
    noNewPrivileges: false,
    appArmorProfile: '',
    oomScoreAdj: 0,
    ulimits: stack === undefined ? {} : { stack: { soft: stack, hard: stack } },
  };
}

const long = (length: number): string => 'x'.repeat(length);
const many = (count: number): string[] => Array.from({ length: count }, () => long(100_000));

for (const [what, args, env, expected] of [
  ['the longest argument', ['true', long(131_071)], [], false],
  ['an argument that is one longer', ['true', long(131_072)], [], true],
  ['a variable that is one longer', ['true'], [`A=${long(131_070)}`], true],
  ['20 arguments', ['true', ...many(20)], [], false],
  ['21 arguments', ['true', ...many(21)], [], true],
  ['arguments and variables', ['true', ...many(11)], many(11).map((value, n) => `A${n}=${value}`), true],
] as const) {
  if (process.arch !== 'x64') break; // pages may be larger
  test(`the kernel says the same of ${what}, with a stack of 8 MiB`, () => {
    const run = spawnSync('/usr/bin/prlimit', ['--stack=8388608', '/bin/busybox', ...args], {
      env: Object.fromEntries(env.map((each) => each.split('=') as [string, string])),
    });
    const refused = run.status !== 0;

    assert.deepEqual([isTooLong(described([...args], [...env], 8_388_608)), refused], [expected, expected]);
  });
}

test('more of the stack is more for arguments, up to a limit', () => {
  assert.equal(isTooLong(described(['true', ...many(30)], [], 16_777_216)), false);
  assert.equal(isTooLong(described(['true', ...many(62)], [], -1)), false);
  assert.equal(isTooLong(described(['true', ...many(63)], [], -1)), true);
});
