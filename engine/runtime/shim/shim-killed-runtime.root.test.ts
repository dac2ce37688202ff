import assert from 'node:assert/strict';
import { existsSync, globSync, readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { test } from 'node:test';

import { TestBundle } from '@gantry/testing/test-bundle.ts';

import { detectCgroups } from '../../host/cgroups/cgroups.ts';
import { hasCode } from '../../lib/errors.ts';
import { StartFailed } from '../start-failure.ts';
import { removeShimFolder } from './shim-folder.ts';

/** By hand: `GANTRY_RUNTIME_KILLS=2000 node --test engine/runtime/shim/shim-killed-runtime.root.test.ts`. */
const KILLS = Number(process.env.GANTRY_RUNTIME_KILLS ?? 150);
const AT_ONCE = 4;

/** Everything of a container that is left on the machine. */
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

/** Kills the runtime after a while, but not its helpers. */
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
  });

  test(`a kill of ${runtime} that is sure to hit the middle of a start leaves nothing`, async () => {
    await using bundle = new TestBundle();
    const hooks = { createRuntime: [{ path: '/bin/sh', args: ['sh', '-c', 'kill -9 $PPID; sleep 1000'] }] };
    const shim = await bundle.shim(['sleep', '1000'], { runtime, hidden, hooks });

    await assert.rejects(shim.start(), StartFailed);

    await shim.gone;
    assert.deepEqual(remainsOf(bundle), []);
  });
}

test('the folder of a shim goes also when crun was killed while its program was mounted there', async () => {
  await using bundle = new TestBundle();
  const copies = `for n in 1 2; do touch crun.AAAAA$n; done; mount --bind /bin/true crun.AAAAA1; echo $_LIBCONTAINER_STATEDIR >place`;
  const script = `case "$*" in *" run "*) ${copies}; exit 1;; esac; exec runc "$@"`;
  const shim = await bundle.shim(['true'], { runtime: bundle.runtime(script) });
  await assert.rejects(shim.start(), StartFailed);
  await shim.gone;
  assert.equal(readFileSync(join(bundle.folder, 'place'), 'utf8'), `${bundle.folder}\n`);

  await removeShimFolder(bundle.folder);

  assert.equal(existsSync(bundle.folder), false);
  assert.doesNotMatch(readFileSync('/proc/self/mountinfo', 'utf8'), new RegExp(bundle.directory));
});

test('a runtime that hangs after it has started the process leaves nothing either, and another start succeeds', async () => {
  await using bundle = new TestBundle();
  const script = 'case "$*" in *" run "*) runc "$@"; exec sleep 1000;; esac; exec runc "$@"';
  const shim = await bundle.shim(['sleep', '1000'], { runtime: bundle.runtime(script), runtimeSeconds: 1 });

  await assert.rejects(shim.start(), /the runtime did not answer within 1 seconds/);

  await shim.gone;
  assert.deepEqual(remainsOf(bundle), []);
  await (await bundle.shim(['sleep', '1000'])).start();
});

test('processes of a start that fails are ended, however fast they make new ones', async () => {
  await using bundle = new TestBundle();
  const bomb = 'bomb() { while :; do (sleep 0.01; bomb) & done; }';
  const pids = `/sys/fs/cgroup/pids/gantry-test/${bundle.id}`;
  // Beside the container's process: there is no namespace that would end them as a whole.
  const enter = `for f in /sys/fs/cgroup/*/gantry-test/${bundle.id}/cgroup.procs; do echo 0 >$f; done; echo 60 >${pids}/pids.max`;
  const manyMore = `until read -r count <${pids}/pids.current && [ $count -gt 10 ]; do sleep 0.02; done; echo $count >${bundle.directory}/count`;
  const failing = `runc "$@"; (${enter}; ${bomb}; bomb) 2>/dev/null & ${manyMore}; exit 1`;
  const script = `case "$*" in *" run "*) ${failing};; esac; exec runc "$@"`;
  const shim = await bundle.shim(['sleep', '1000'], { runtime: bundle.runtime(script), runtimeSeconds: 180 });

  await assert.rejects(shim.start(), StartFailed);

  await shim.gone;
  assert.ok(Number(readFileSync(`${bundle.directory}/count`, 'utf8')) > 10);
  assert.deepEqual(remainsOf(bundle), []);
});
