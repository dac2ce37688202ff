import assert from 'node:assert/strict';
import { globSync, readdirSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { test } from 'node:test';

import { detectCgroups } from '../host/cgroups.ts';
import { hasCode } from '../lib/errors.ts';
import { StartFailed } from './start-failure.ts';
import { TestBundle } from './test-bundle.ts';

/** By hand: `GANTRY_RUNTIME_KILLS=2000 node --test engine/runtime/shim-killed-runtime.root.test.ts`. */
const KILLS = Number(process.env.GANTRY_RUNTIME_KILLS ?? 150);
const AT_ONCE = 4;

/** What is left of a container anywhere on the machine. */
function remainsOf({ id, state }: TestBundle): string[] {
  const processes = readdirSync('/proc').filter((pid) => /^\d+$/.test(pid) && cgroupsOf(pid).includes(id));
  return [...processes, ...globSync(`/sys/fs/cgroup/{*/,}gantry-test/${id}`), ...statesIn(state)];
}

function cgroupsOf(pid: string): string {
  return readIfThere(`/proc/${pid}/cgroup`);
}

function readIfThere(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (hasCode(error, 'ENOENT') || hasCode(error, 'ESRCH')) return '';
    throw error;
  }
}

function statesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return [];
    throw error;
  }
}

/** Kills the runtime itself after a while, as somebody from outside would; its helpers are not told. */
function killedAfter(runtime: string, microseconds: number): string {
  return `case "$*" in *" run "*) ;; *) exec ${runtime} "$@";; esac
${runtime} "$@" & pid=$!
busybox usleep ${microseconds}
kill -9 $pid 2>/dev/null; wait $pid`;
}

const { hybrid, mounts } = detectCgroups();

for (const { runtime, longestMs, hidden } of [
  { runtime: 'runc', longestMs: 120, hidden: undefined },
  { runtime: 'crun', longestMs: 40, hidden: hybrid ? mounts.find((path) => basename(path) === 'unified') : undefined },
]) {
  test(`${KILLS} kills of ${runtime} in the middle of a start leave nothing`, async (t) => {
    const left: string[] = [];
    let failed = 0;
    const attempt = async (number: number): Promise<void> => {
      await using bundle = new TestBundle();
      const delay = Math.round((longestMs * 1000 * number) / KILLS);
      const shim = await bundle.shim(['sleep', '1000'], {
        runtime: bundle.runtime(killedAfter(runtime, delay)),
        hidden,
      });
      try {
        await shim.start();
        await shim.signal(9);
      } catch (error) {
        if (!(error instanceof StartFailed)) throw error;
        failed += 1;
      }
      shim.release();
      await shim.gone;
      left.push(...remainsOf(bundle));
    };
    const numbers = Array.from({ length: KILLS }, (_, number) => number);

    await Promise.all(
      Array.from({ length: AT_ONCE }, async () => {
        for (let next = numbers.pop(); next !== undefined; next = numbers.pop()) await attempt(next);
      }),
    );

    t.diagnostic(`${failed} of ${KILLS} starts failed`);
    assert.deepEqual(left, []);
    assert.ok(failed > KILLS / 10);
  });
}
