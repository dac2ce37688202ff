import assert from 'node:assert/strict';
import { test } from 'node:test';

import { parseFile } from '../parse.ts';

/** Processor time; a copy of the comments for each one took ten times as much. */
const MAX_SECONDS = 5;

test('90,000 comments before an instruction are kept in linear time', () => {
  const before = process.cpuUsage();

  const { lines } = parseFile(`FROM busybox\n${'# a comment\n'.repeat(90_000)}RUN true\n`);

  const { user } = process.cpuUsage(before);
  assert.equal(lines[1]!.comments.length, 90_000);
  assert.ok(user < MAX_SECONDS * 1e6, `${user / 1e6} s`);
});
