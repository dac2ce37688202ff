import assert from 'node:assert/strict';
import { test } from 'node:test';

import { refuseOtherSyntax } from './syntax.ts';

const NONE: ReadonlyMap<string, string> = new Map();
const own: readonly string[] = [
  'FROM x',
  '# syntax=docker/dockerfile:1\nFROM x',
  '#syntax = docker.io/docker/dockerfile-upstream:master-labs',
  '#!/usr/bin/env x\n# escape=`\n# syntax=docker/dockerfile',
  'FROM x\n# syntax=other',
  '# a comment\n# syntax=other',
  '{"not json',
];
for (const text of own) {
  test(`${JSON.stringify(text)} is read by this frontend`, () => {
    refuseOtherSyntax(text, NONE);
  });
}

const others: readonly (readonly [string, number])[] = [
  ['# syntax=example.com/mine:1 --arg\nFROM x', 1],
  ['#!/x\n#check=skip=all\n#SYNTAX=example.com/mine:1', 3],
  ['// syntax=example.com/mine:1\n{}', 1],
  ['{"syntax": "example.com/mine:1"}', 1],
  ['# syntax=docker/dockerfile/example.com/mine:1', 1],
];
for (const [text, number] of others) {
  test(`${JSON.stringify(text)} is refused by name`, () => {
    assert.throws(() => refuseOtherSyntax(text, NONE), {
      kind: 'notImplemented',
      number,
      message: /example\.com\/mine:1 is/,
    });
  });
}

test('the client names another syntax by a build argument', () => {
  const argument = new Map([['build-arg:BUILDKIT_SYNTAX', 'example.com/mine']]);

  assert.throws(() => refuseOtherSyntax('FROM x', argument), {
    kind: 'notImplemented',
    message: /example\.com\/mine is/,
  });
});
