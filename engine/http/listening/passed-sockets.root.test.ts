import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, existsSync, mkdtempDisposableSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { setTimeout } from 'node:timers/promises';

import type { Answer } from '@gantry/client/connection.ts';
import { hasCode } from '@gantry/engine/lib/errors.ts';
import { Api } from '@gantry/testing/api.ts';
import { eventually } from '@gantry/testing/eventually.ts';

const engine = dirname(dirname(import.meta.dirname));
/** O_CLOEXEC, as the kernel shows it. */
const CLOSED_ON_EXEC = 0o2000000;

test('the daemon listens on sockets that systemd passes, and leaves them to the next daemon', async () => {
  for (const asFd of [true, false]) {
    using place = mkdtempDisposableSync(join(tmpdir(), 'gantry-passed-'));
    const socket = join(place.path, 'gantry.sock');
    const log = join(place.path, 'log');
    const daemon = activated(place.path, socket, asFd ? 'fd://' : `unix://${socket}`);
    const ended = once(daemon, 'exit');
    try {
      await eventually('a socket', () => existsSync(socket));
      using api = new Api(socket);

      const { status } = await firstAnswer(api);

      assert.equal(status, 200);
      await eventually('the daemon is ready', () => readFileSync(log, 'utf8').includes('"msg":"ready"'));
      assert.ok(readFileSync(log, 'utf8').includes(`"hosts":["unix://${socket}"]`));
      const flags = /^flags:\s+(\d+)$/m.exec(readFileSync(`/proc/${daemon.pid}/fdinfo/3`, 'utf8'))?.[1];
      assert.notEqual(parseInt(flags ?? '', 8) & CLOSED_ON_EXEC, 0, 'no container inherits it');
    } finally {
      daemon.kill('SIGTERM');
      await ended;
    }
    assert.ok(existsSync(socket), 'the file is not ours to remove');
    rmSync(socket);
  }
});

test('without sockets from systemd fd:// is refused', async () => {
  using place = mkdtempDisposableSync(join(tmpdir(), 'gantry-passed-'));
  const daemon = run(place.path, [], 'fd://');
  const [code] = (await once(daemon, 'exit')) as [number];

  assert.equal(code, 1);
  assert.match(readFileSync(join(place.path, 'log'), 'utf8'), /fd:\/\/: systemd has passed no sockets/);
});

/** The file is there a moment before somebody listens. */
async function firstAnswer(api: Api): Promise<Answer> {
  const signal = AbortSignal.timeout(120_000);
  for (;;) {
    try {
      return await api.get('/_ping');
    } catch (error) {
      if (!hasCode(error, 'ECONNREFUSED')) throw error;
    }
    await setTimeout(50, undefined, { signal });
  }
}

function activated(place: string, socket: string, host: string): ChildProcess {
  return run(place, ['systemd-socket-activate', `--listen=${socket}`], host);
}

/** In a network namespace of its own; the commands before it become the daemon, with its process id. */
function run(place: string, before: readonly string[], host: string): ChildProcess {
  const flags = [`--data-root=${place}/data`, `--exec-root=${place}/exec`, `--pidfile=${place}/pid`, '--bridge=none'];
  const command = [...before, process.execPath, join(engine, 'main.ts'), `--host=${host}`, ...flags];
  const log = openSync(join(place, 'log'), 'a');
  const child = spawn('unshare', ['--net', ...command], { stdio: ['ignore', log, log] });
  closeSync(log);
  return child;
}
