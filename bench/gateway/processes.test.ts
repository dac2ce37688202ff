import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import { eventually } from '@gantry/testing/eventually.ts';

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGKILL'] as const) {
  test(`a bench that is ended by ${signal} leaves no server behind`, async () => {
    await using undo = new AsyncDisposableStack();
    const folder = mkdtempSync(join(tmpdir(), 'gantry-test-bench-'));
    undo.defer(() => rmSync(folder, { recursive: true }));
    const bench = spawn(process.execPath, [join(import.meta.dirname, 'processes.fixture.ts')], {
      env: { ...process.env, TMPDIR: folder },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const exited = once(bench, 'exit');
    await once(bench.stdout, 'data');
    const started = readFileSync(`/proc/${bench.pid}/task/${bench.pid}/children`, 'utf8').trim().split(' ');

    bench.kill(signal);
    const [code] = (await exited) as [number | null];

    assert.equal(started.length, 3);
    assert.equal(code, signal === 'SIGKILL' ? null : 130);
    await eventually('they have ended', () => started.every(hasEnded));
    if (signal !== 'SIGKILL') assert.deepEqual(readdirSync(folder), []);
  });
}

/** A process that nobody has waited for yet has no command any more. */
function hasEnded(pid: string): boolean {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8') === '';
  } catch {
    return true;
  }
}
