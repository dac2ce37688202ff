import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';

import type { Inspect } from '@gantry/engine/containers/schema.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

/** Thousands by hand: `GANTRY_EXECS=3000 ./gantry test engine/exec/leftovers.root.test.ts`. */
const EXECS = Number(process.env.GANTRY_EXECS ?? 200);
const AT_ONCE = 10;

suite(`${EXECS} execs in one container`, { timeout: 900_000 }, () => {
  let engine: TestEngine;
  before(async () => {
    engine = await TestEngine.start();
  });
  after(async () => await engine[Symbol.asyncDispose]());

  async function exec(id: string, command: readonly string[]): Promise<string> {
    const body = { Cmd: command, AttachStdout: true, AttachStderr: true };
    const { body: made } = await engine.post<{ Id: string }>(`/containers/${id}/exec`, body);
    const answer = await engine.post(`/exec/${made.Id}/start`, { Detach: false, Tty: false });
    assert.equal(answer.status, 200);
    return answer.raw.subarray(8).toString();
  }

  /** Possible leftovers: processes, descriptors and files of the daemon, execs in an inspect. */
  async function held(id: string): Promise<Record<string, number>> {
    const { body } = await engine.get<Inspect>(`/containers/${id}/json`);
    return {
      descriptors: readdirSync(`/proc/${engine.pid}/fd`).length,
      children: childrenOf(engine.pid).length,
      files: filesBelow(join(engine.directory, 'exec')),
      execs: body.ExecIDs?.length ?? 0,
      processes: (await engine.get<{ Processes: unknown[] }>(`/containers/${id}/top`)).body.Processes.length,
    };
  }

  test('each prints its output, and nothing of them is left', async (t) => {
    const id = await engine.run(['sleep', '100000']);
    await Promise.all(Array.from({ length: AT_ONCE }, async () => await exec(id, ['true']))); // connections are made
    const before = await settled(async () => await held(id));

    for (let done = 0; done < EXECS; done += AT_ONCE) {
      const numbers = Array.from({ length: AT_ONCE }, (_, number) => done + number);
      const said = await Promise.all(numbers.map(async (number) => await exec(id, ['echo', String(number)])));
      assert.deepEqual(
        said,
        numbers.map((number) => `${number}\n`),
      );
    }

    const left = await settled(async () => await held(id), before);
    assert.deepEqual(exceeding(left, before), []);
    t.diagnostic(`${JSON.stringify({ before, left })}, RSS ${rssMb(engine.pid)} MB`);
    await engine.delete(`/containers/${id}?force=1`);
  });
});

/** Counts that are above those of `before`. */
function exceeding(now: Readonly<Record<string, number>>, before: Readonly<Record<string, number>>): string[] {
  return Object.keys(now).filter((key) => now[key]! > before[key]!);
}

/** The figures as soon as none exceeds `goal`, or is the same three times: what ends does so in the background. */
async function settled(
  look: () => Promise<Record<string, number>>,
  goal?: Readonly<Record<string, number>>,
): Promise<Record<string, number>> {
  let last = await look();
  let same = 0;
  for (const end = Date.now() + 120_000; Date.now() < end && same < (goal === undefined ? 3 : Infinity);) {
    if (goal !== undefined && exceeding(last, goal).length === 0) return last;
    await setTimeout(200);
    const next = await look();
    same = JSON.stringify(next) === JSON.stringify(last) ? same + 1 : 0;
    last = next;
  }
  return last;
}

/** Counts files. A folder goes with its exec, perhaps amid the look. */
function filesBelow(folder: string): number {
  try {
    const entries = readdirSync(folder, { withFileTypes: true });
    const inside = entries.filter((entry) => entry.isDirectory()).map(({ name }) => filesBelow(join(folder, name)));
    return inside.reduce((sum, count) => sum + count, entries.length);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return 0;
    throw error;
  }
}

function childrenOf(pid: number): string[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean);
}

function rssMb(pid: number): number {
  const kilobytes = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  return Math.round(Number(kilobytes) / 1024);
}
