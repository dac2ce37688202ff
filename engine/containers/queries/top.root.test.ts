import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';

import type { Inspect, Top } from '@gantry/engine/containers/schema.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

suite('the processes of a container', { concurrency: false }, () => {
  let engine: TestEngine;
  let id: string;
  let pid: string;
  before(async () => {
    engine = await TestEngine.start();
    id = await engine.run(['sleep', '61']);
    pid = String((await engine.get<Inspect>(`/containers/${id}/json`)).body.State.Pid);
  });
  after(async () => await engine[Symbol.asyncDispose]());

  for (const words of ['-o pid,args', '-o pid,args ww', 'a -o pid,args']) {
    test(`are shown as the host's ps sees them: ${words}`, async () => {
      const { body } = await engine.get<Top>(`/containers/${id}/top?ps_args=${encodeURIComponent(words)}`);

      assert.deepEqual([body.Titles, body.Processes], [['PID', 'COMMAND'], [[pid, 'sleep 61']]]);
    });
  }

  /** In dockerd's words. */
  const refusals: [words: string, message: RegExp][] = [
    ['nonsense', /^ps: error: unknown user-defined format specifier "nsense"$/],
    ['-C nosuch', /^ps: exit status 1$/],
    ['-o args', /^Couldn't find PID field in ps output$/],
    ['-o ppid=PID', /^specifying "ppid=PID" is not allowed$/],
  ];
  for (const [words, message] of refusals) {
    test(`a refusal of ps is a 500 with its reason: ${words}`, async () => {
      const answer = await engine.get<{ message: string }>(
        `/containers/${id}/top?ps_args=${encodeURIComponent(words)}`,
      );

      assert.equal(answer.status, 500);
      assert.match(answer.body.message, message);
    });
  }
});
