import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';

import { TestEngine } from '@gantry/testing/test-engine.ts';

suite('the first process of a container with Init', { concurrency: false }, () => {
  let engine: TestEngine;
  before(async () => {
    engine = await TestEngine.start();
  });
  after(async () => await engine[Symbol.asyncDispose]());

  const INIT = { HostConfig: { Init: true } };

  async function codeOf(command: readonly string[], body: object = INIT): Promise<number> {
    return await engine.wait(await engine.run(command, { ...body }));
  }

  /** Waits until the container has written a line. */
  async function said(id: string, line: string): Promise<void> {
    while (!(await engine.output(id)).stdout.includes(line));
  }

  test('ends with the code of the command, or of its signal', async () => {
    assert.equal(await codeOf(['sh', '-c', 'exit 7']), 7);
    assert.equal(await codeOf(['sh', '-c', 'kill -9 $$']), 137);
  });

  test('a command that is not there is 127, and one that is no program 126', async () => {
    assert.equal(await codeOf(['/nope']), 127);
    assert.equal(await codeOf(['/etc']), 126);
  });

  test('forwards signals to the command', async () => {
    const id = await engine.run(
      ['sh', '-c', 'trap "echo usr1" USR1; trap "echo bye; exit 5" TERM; echo ready; while :; do sleep 0.05; done'],
      INIT,
    );
    await said(id, 'ready');

    await engine.post(`/containers/${id}/kill?signal=USR1`);
    await said(id, 'usr1');
    await engine.post(`/containers/${id}/stop?t=600`);

    assert.equal(await engine.wait(id), 5);
    assert.match((await engine.output(id)).stdout, /bye/);
  });

  test('SIGTERM ends a command without a handler', async () => {
    const id = await engine.run(['sleep', '1000'], INIT);

    await engine.post(`/containers/${id}/stop?t=600`);

    assert.equal(await engine.wait(id), 143);
  });

  test('reaps orphans', async () => {
    const orphan = '(sleep 0.2 & exec true) & wait; sleep 1';
    const script = `sh -c '${orphan}'; for i in 1 2 3; do sh -c 'sleep 0.1 &'; done; sleep 2; ps -o stat | grep -c Z`;
    const id = await engine.run(['sh', '-c', script], INIT);

    assert.equal(await engine.wait(id), 1);
    assert.equal((await engine.output(id)).stdout, '0\n');
  });

  test('the terminal is that of the command', async () => {
    const id = await engine.run(['sh', '-c', 'stty size; tty; cat /proc/1/comm'], { ...INIT, Tty: true });

    assert.equal(await engine.wait(id), 0);
    const { raw } = await engine.get(`/containers/${id}/logs?stdout=1`);
    assert.deepEqual(raw.toString().split('\r\n').slice(1), ['/dev/pts/0', 'docker-init', '']);
  });

  test('a read-only root has it too', async () => {
    assert.equal(await codeOf(['true'], { HostConfig: { Init: true, ReadonlyRootfs: true } }), 0);
  });
});
