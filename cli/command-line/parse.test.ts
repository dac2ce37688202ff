import assert from 'node:assert/strict';
import { test } from 'node:test';

import { MANY } from './command.ts';
import { checkCount, parse } from './parse.ts';

const FLAGS = {
  all: { kind: 'boolean', short: 'a', help: '' },
  proxy: { kind: 'boolean', initial: 'true', help: '' },
  publish: { kind: 'list', short: 'p', help: '' },
  memory: { kind: 'bytes', short: 'm', help: '' },
  last: { kind: 'integer', short: 'n', help: '' },
  cpus: { kind: 'decimal', help: '' },
  every: { kind: 'duration', help: '' },
  name: { kind: 'text', help: '' },
  init: { kind: 'boolean', help: '', refused: 'the engine has none' },
} as const;
const NOTHING = {
  all: false,
  proxy: true,
  publish: [],
  memory: undefined,
  last: undefined,
  cpus: undefined,
  every: undefined,
  name: undefined,
  init: false,
};

for (const [argv, words, flags] of [
  [[], [], {}],
  [['-a', 'x', '--name', 'n', 'y'], ['x', 'y'], { all: true, name: 'n' }],
  [['--name=a=b'], [], { name: 'a=b' }],
  [['--name='], [], { name: '' }],
  [['--name', '--all'], [], { name: '--all' }],
  [['--name', 'a', '--name', 'b'], [], { name: 'b' }],
  [['-ap80', '-p', '81', '-p=82'], [], { all: true, publish: ['80', '81', '82'] }],
  [['--all=false', '--proxy=false'], [], { proxy: false }],
  [['-a=0'], [], {}],
  [
    ['-m64m', '-n', '-1', '--cpus', '.5', '--every', '1m30s'],
    [],
    { memory: 2 ** 26, last: -1, cpus: 0.5, every: 90e9 },
  ],
  [['--', '-a', '--', 'x'], ['-a', '--', 'x'], {}],
  [['-', '-a'], ['-'], { all: true }],
] as const) {
  test(`docker's way to read: ${argv.join(' ')}`, () => {
    assert.deepEqual(parse({ flags: FLAGS }, argv), {
      help: false,
      words: [...words],
      flags: { ...NOTHING, ...flags },
    });
  });
}

test('the flags end where the words of the container’s command begin', () => {
  const parsed = parse({ flags: FLAGS, passesOn: true }, ['-a', 'busybox', 'ls', '-a', '--name', '--', '--help']);

  assert.deepEqual(parsed, {
    help: false,
    words: ['busybox', 'ls', '-a', '--name', '--', '--help'],
    flags: { ...NOTHING, all: true },
  });
});

for (const [argv, message] of [
  [['--nonsense'], 'unknown flag: --nonsense'],
  [['--toString'], 'unknown flag: --toString'],
  [['-ax'], "unknown shorthand flag: 'x' in -ax"],
  [['--name'], 'flag needs an argument: --name'],
  [['-ap'], 'flag needs an argument: -p, --publish'],
  [
    ['-m', 'much'],
    'invalid argument "much" for "-m, --memory" flag: expected a size such as 64m, 1g or a number of bytes',
  ],
  [['--last=1.5'], 'invalid argument "1.5" for "-n, --last" flag: expected a whole number'],
  [['--all=maybe'], 'invalid argument "maybe" for "-a, --all" flag: expected true or false'],
  [['--init'], '--init cannot be used: the engine has none'],
] as const) {
  test(`refused with 125: ${argv.join(' ')}`, () => {
    assert.throws(() => parse({ flags: FLAGS }, argv), { message, code: 125 });
  });
}

test('--help is found before the words are looked at, and -h where it is no other flag', () => {
  assert.deepEqual(parse({ flags: FLAGS }, ['x', '--help']), { help: true });
  assert.deepEqual(parse({ flags: FLAGS }, ['-h']), { help: true });
  assert.throws(
    () => parse({ flags: { hostname: { kind: 'text', short: 'h', help: '' } } }, ['-h']),
    /needs an argument/,
  );
});

for (const [count, words, message] of [
  [[0, 0], 1, "'gantry x' accepts no arguments"],
  [[1, 1], 0, "'gantry x' requires 1 argument"],
  [[2, 2], 3, "'gantry x' requires 2 arguments"],
  [[1, MANY], 0, "'gantry x' requires at least 1 argument"],
  [[0, 1], 2, "'gantry x' requires at most 1 argument"],
] as const) {
  test(`of the words: ${message}`, () => {
    assert.throws(() => checkCount('x', count, words), { message, code: 125 });
  });
}
