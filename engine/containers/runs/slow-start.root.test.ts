import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';

import type { Inspect } from '@gantry/engine/containers/schema.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

suite('requests during a start', { concurrency: false }, () => {
  let engine: TestEngine;
  let folder: string;
  const [go, begun] = ['go', 'begun'];
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'gantry-slow-'));
    const path = join(folder, 'crun');
    const waits = `touch ${folder}/${begun}; until [ -e ${folder}/${go} ]; do sleep 0.02; done`;
    writeFileSync(path, `#!/bin/sh\ncase "$*" in *" run "*) ${waits};; esac\nexec crun "$@"\n`, { mode: 0o755 });
    engine = await TestEngine.start({ flags: [`--add-runtime=slow=${path}`] });
  });
  after(async () => {
    await engine[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true });
  });

  function hold(): void {
    rmSync(join(folder, begun), { force: true });
    rmSync(join(folder, go), { force: true });
  }

  function letGo(): void {
    writeFileSync(join(folder, go), '');
  }

  async function startBegins(): Promise<void> {
    while (!existsSync(join(folder, begun))) await setTimeout(5);
  }

  async function stateOf(id: string): Promise<Inspect['State']> {
    return (await engine.get<Inspect>(`/containers/${id}/json`)).body.State;
  }

  /** Answer of a request that is sent while the start is held up. */
  async function meets<T>(request: () => Promise<T>): Promise<T> {
    await startBegins();
    const answer = request();
    await engine.get('/_ping'); // it has arrived as well
    letGo();
    return await answer;
  }

  for (const [path, status, code] of [
    ['stop?t=0', 204, 137],
    ['kill', 204, 137],
  ] as const) {
    test(`${path} waits for a start and ends the container`, async () => {
      hold();
      const id = await engine.create(['sleep', '600'], { HostConfig: { Runtime: 'slow' } });
      const start = engine.post(`/containers/${id}/start`);

      const answer = await meets(() => engine.post(`/containers/${id}/${path}`));

      assert.deepEqual([(await start).status, answer.status], [204, status]);
      const { Status, ExitCode } = await stateOf(id);
      assert.deepEqual([Status, ExitCode], ['exited', code]);
    });
  }

  test('a stop ends a start of a restart policy, for good', async () => {
    letGo();
    const HostConfig = { Runtime: 'slow', RestartPolicy: { Name: 'always' } };
    const id = await engine.run(['sh', '-c', '[ -e /ran ] && exec sleep 600; touch /ran'], { HostConfig });
    hold();

    const { status } = await meets(() => engine.post(`/containers/${id}/stop?t=0`));

    assert.equal(status, 204);
    const { Status, ExitCode } = await stateOf(id);
    assert.deepEqual([Status, ExitCode], ['exited', 137]);
  });

  test('a stop of a start that fails has nothing to stop', async () => {
    hold();
    const id = await engine.create(['/no-such-program'], { HostConfig: { Runtime: 'slow' } });
    const start = engine.post(`/containers/${id}/start`);

    const { status } = await meets(() => engine.post(`/containers/${id}/stop`));

    assert.deepEqual([(await start).status >= 400, status], [true, 304]);
  });
});
