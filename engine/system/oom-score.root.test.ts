import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

import { shimOf } from '@gantry/testing/shim-of.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

function scoreOf(pid: number): number {
  return Number(readFileSync(`/proc/${pid}/oom_score_adj`, 'utf8'));
}

/** Whether this machine allows a score below our own. */
function mayGoLower(): boolean {
  try {
    execFileSync('sh', ['-c', 'echo -999 >/proc/self/oom_score_adj'], { stdio: 'pipe' });
    return true;
  } catch {
    return false;
  }
}

test('the daemon and its shims are spared where that is allowed, containers have their own score', async () => {
  await using engine = await TestEngine.start();
  const spared = mayGoLower();
  const own = scoreOf(process.pid);

  for (const OomScoreAdj of [0, 300]) {
    const id = await engine.run(['sleep', '600'], { HostConfig: { OomScoreAdj } });
    const { State } = (await engine.get<{ State: { Pid: number } }>(`/containers/${id}/json`)).body;
    const exec = await engine.docker('exec', id, 'cat', '/proc/self/oom_score_adj');

    assert.equal(scoreOf(State.Pid), OomScoreAdj);
    assert.equal(exec.stdout, `${OomScoreAdj}\n`);
    assert.equal(scoreOf(shimOf(State.Pid)), spared ? -999 : own);
  }
  assert.equal(scoreOf(engine.pid), spared ? -500 : own);
});
