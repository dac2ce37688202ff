import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { gantryInThread } from '@gantry/testing/clients/client-thread.ts';
import { said } from '@gantry/testing/clients/own-client.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

import { ALIKE, DIFFERENT } from './docker-lines.ts';

describe('both command lines against one engine', () => {
  let engine: TestEngine;

  before(async () => {
    engine = await TestEngine.start({ version: '1.24' });
    const make = async (...words: string[]): Promise<unknown> => await said(engine, ...words);
    await make('network', 'create', '--label', 'tier=low', '--subnet', '10.77.0.0/24', 'back');
    await make('volume', 'create', '--label', 'tier=low', 'pages');
    const published = ['-p', '127.0.0.1:8080:80', '--expose', '99', '-v', 'pages:/data'];
    const labels = ['--label', 'tier=front', '--label', 'b=2'];
    await make('run', '-d', '--name', 'web', ...published, ...labels, 'busybox', 'sleep', '100000');
    await make('run', '-d', '--name', 'second', '--network', 'back', 'busybox', 'sleep', '100000');
    await gantryInThread(engine, ['run', '--name', 'done', 'busybox', 'sh', '-c', 'echo out; echo more; exit 3']);
    await make('create', '--name', 'made', '--label', 'tier=front', 'busybox', 'sh', '-c', 'echo a long command line');
  });
  after(async () => await engine[Symbol.asyncDispose]());

  for (const line of ALIKE) {
    test(line.join(' '), async () => {
      const [theirs, ours] = await Promise.all([engine.docker(...line), gantryInThread(engine, line)]);

      assert.deepEqual([ours.code, readable(ours.stdout)], [theirs.code, readable(theirs.stdout)]);
      assert.equal(ours.stderr === '', theirs.stderr === '', `${theirs.stderr}${ours.stderr}`);
    });
  }

  for (const { line, why, ...codes } of DIFFERENT) {
    test(`${line.join(' ')}: ${why}`, async () => {
      const [theirs, ours] = await Promise.all([engine.docker(...line), gantryInThread(engine, line)]);

      assert.deepEqual({ theirs: theirs.code, ours: ours.code }, codes, `${theirs.stderr}${ours.stderr}`);
    });
  }
});

/** Lines of JSON as values, since the order of keys says nothing; others without the blanks at the end, which docker's tables have. */
function readable(text: string): unknown[] {
  return text.split('\n').map((line): unknown => {
    // Numbers as texts, because some have more digits than a number keeps.
    if (/^\[?\{".*[\]}]$/.test(line)) return JSON.parse(line.replace(/:(\d+)(?=[,}])/g, ':"$1"'));
    return line.trimEnd();
  });
}
