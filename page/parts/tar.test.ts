import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';

import { firstFile, packTar } from './tar.ts';

test('a packed archive is read by tar, with long names and names of any script', async () => {
  const long = `${'folder/'.repeat(40)}größe ✓.txt`;
  const files = [
    { path: 'a', body: new Blob(['first']) },
    { path: long, body: new Blob(['x'.repeat(1000)]) },
    { path: 'empty', body: new Blob([]) },
  ];
  const archive = Buffer.from(await packTar(files).arrayBuffer());

  const { stdout, status } = spawnSync('tar', ['-t', '--quoting-style=literal'], { input: archive, encoding: 'utf8' });
  const content = spawnSync('tar', ['-x', '-O', long], { input: archive, encoding: 'utf8' });

  assert.equal(status, 0);
  assert.deepEqual(stdout.trim().split('\n'), ['a', long, 'empty']);
  assert.equal(content.stdout, 'x'.repeat(1000));
});

test('the first file of an archive is found behind its extended header', async () => {
  const archive = new Uint8Array(await packTar([{ path: 'a', body: new Blob(['hello']) }]).arrayBuffer());

  assert.equal(new TextDecoder().decode(firstFile(archive)), 'hello');
  assert.equal(firstFile(new Uint8Array(1024)), undefined);
});
