import assert from 'node:assert/strict';
import { globSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';

import type { Inspect } from '@gantry/engine/containers/schema.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

import { hasCode } from '../../lib/errors.ts';

const KILLS = Number(process.env.GANTRY_RUNTIME_KILLS ?? 40);
const MAX_MS = 40;

suite('a start with killed parts', { concurrency: false }, () => {
  let engine: TestEngine;
  let folder: string;
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'gantry-kills-'));
    const wait = `busybox usleep "$(cat ${folder}/delay)"`;
    const scripts = {
      // The kill of a runtime that has ended hits nobody.
      runtime: `crun "$@" & pid=$!; ${wait}; kill -9 $pid 2>/dev/null; wait $pid`,
      shim: `shim=$PPID; (${wait}; [ "$(cat /proc/$shim/comm)" != gantry-shim ] || kill -9 $shim) 2>/dev/null & exec crun "$@"`,
    };
    for (const [name, script] of Object.entries(scripts)) {
      const only = `case "$*" in *" run "*) ;; *) exec crun "$@";; esac`;
      // Under the name of crun it gets what crun needs.
      const place = mkdtempSync(join(folder, `${name}-`));
      writeFileSync(join(place, 'crun'), `#!/bin/sh\n${only}\n${script}\n`, { mode: 0o755 });
      writeFileSync(join(folder, name), place);
    }
    const flags = Object.keys(scripts).map(
      (name) => `--add-runtime=${name}=${readFileSync(join(folder, name), 'utf8')}/crun`,
    );
    engine = await TestEngine.start({ flags });
  });
  after(async () => {
    await engine[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true });
  });

  function remainsOf(id: string): string[] {
    const processes = readdirSync('/proc').filter((pid) => /^\d+$/.test(pid) && cgroupsOf(pid).includes(id));
    return [...processes, ...globSync(`/sys/fs/cgroup/{*/,}docker/${id}`)];
  }

  async function settles(left: () => string[]): Promise<void> {
    const deadline = performance.now() + 120_000;
    while (left().length > 0) {
      assert.ok(performance.now() < deadline, left().join('\n'));
      await setTimeout(20);
    }
  }

  for (const victim of ['runtime', 'shim']) {
    test(`${KILLS} kills of its ${victim} leave nothing, and it can be started afterwards`, async () => {
      const id = await engine.create(['sleep', '1000'], { HostConfig: { Runtime: victim } });
      for (let number = 0; number < KILLS; number += 1) {
        writeFileSync(join(folder, 'delay'), String(Math.round((number * MAX_MS * 1000) / KILLS)));
        const { status } = await engine.post(`/containers/${id}/start`);
        assert.ok(status === 204 || status === 500, String(status));
        await engine.post(`/containers/${id}/kill`);
        const { Status } = (await engine.get<Inspect>(`/containers/${id}/json`)).body.State;
        assert.ok(['created', 'exited'].includes(Status), Status);
      }

      await settles(() => remainsOf(id));
      writeFileSync(join(folder, 'delay'), '5000000');
      assert.equal((await engine.post(`/containers/${id}/start`)).status, 204);
      assert.equal((await engine.delete(`/containers/${id}?force=1`)).status, 204);
      await settles(() => [
        ...remainsOf(id),
        ...readdirSync(join(engine.directory, 'exec/runtime')),
        ...readdirSync(join(engine.directory, 'exec/shims')),
      ]);
    });
  }
});

function cgroupsOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cgroup`, 'utf8');
  } catch (error) {
    if (hasCode(error, 'ENOENT') || hasCode(error, 'ESRCH')) return '';
    throw error;
  }
}
