import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { chmodSync, mkdtempDisposableSync, readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { promisify } from 'node:util';

import type { Inspect } from '@gantry/engine/containers/schema.ts';
import { eventually } from '@gantry/testing/eventually.ts';
import { compileLookInto } from '@gantry/testing/programs/look-into.ts';
import { shimOf } from '@gantry/testing/shim-of.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

const execute = promisify(execFile);
const NOBODY = '65534';
const PLACE = '/look';
const EVERYTHING = 'ptrace memory mem environ root fd namespace';

/** The engine's processes, which containers may not look into, and which leave no memory on the disk when they die. */
suite('the processes of the engine', { concurrency: false }, () => {
  let engine: TestEngine;
  let target: number;
  const parts = new DisposableStack();
  const place = parts.use(mkdtempDisposableSync(join(tmpdir(), 'gantry-processes-')));
  const program = join(place.path, 'look-into');

  before(async () => {
    chmodSync(place.path, 0o755);
    compileLookInto(program);
    engine = await TestEngine.start({ within: ['prlimit', '--core=unlimited:unlimited'] });
    assert.equal((await engine.post('/networks/create', { Name: 'one' })).status, 201);
    const PortBindings = { '80/tcp': [{ HostIp: '::1', HostPort: '8301' }] };
    const id = await engine.run(['sleep', 'infinity'], { HostConfig: { NetworkMode: 'one', PortBindings } });
    target = (await engine.get<Inspect>(`/containers/${id}/json`)).body.State.Pid;
  });
  after(async () => {
    await engine[Symbol.asyncDispose]();
    parts[Symbol.dispose]();
  });

  /** The processes of a program of ours that serve this engine. */
  function running(name: string): number[] {
    return readdirSync('/proc').flatMap((pid) => {
      if (!/^\d+$/.test(pid)) return [];
      const command = commandOf(pid);
      return command.includes(name) && command.includes(engine.directory) ? [Number(pid)] : [];
    });
  }

  const own = (): number[] => [engine.pid, shimOf(target), ...running('gantry-resolver'), ...running('gantry-proxy')];

  async function lookFrom(HostConfig: object, User: string, pids: readonly number[]): Promise<string[]> {
    const body = { User, HostConfig: { Binds: [`${place.path}:${PLACE}:ro`], ...HostConfig } };
    const id = await engine.run([`${PLACE}/look-into`, ...pids.map(String)], body);
    assert.equal(await engine.wait(id), 0);
    return (await engine.output(id)).stdout.trim().split('\n');
  }

  test('are not seen by a container', async () => {
    const id = await engine.run(['sh', '-c', 'ls /proc | grep -c "^[0-9]"']);
    await engine.wait(id);

    assert.equal(Number((await engine.output(id)).stdout) <= 4, true);
    assert.deepEqual([running('gantry-resolver').length, running('gantry-proxy').length], [2, 1]);
  });

  for (const SecurityOpt of [[], ['seccomp=unconfined']]) {
    test(`give a container with the machine's processes nothing ${SecurityOpt.join()}`, async () => {
      const all = { PidMode: 'host', SecurityOpt };

      assert.deepEqual(await lookFrom(all, '0', own()), own().map(String));
      assert.deepEqual(await lookFrom(all, NOBODY, own()), own().map(String));
      const [other] = await lookFrom(all, '0', [target]);
      if (SecurityOpt.length > 0) assert.equal(other, `${target} ${EVERYTHING}`); // it may look into its like
    });
  }

  test("give a local user nothing, also one with the proxy's rights", async () => {
    const words = [`--reuid=${NOBODY}`, `--regid=${NOBODY}`, '--clear-groups', program, ...own().map(String)];

    const { stdout } = await execute('setpriv', words);

    assert.deepEqual(stdout.trim().split('\n'), own().map(String));
  });

  test('leave no core when they die of a hostile packet', async () => {
    const [proxy] = running('gantry-proxy');
    const resolvers = running('gantry-resolver');
    for (const pid of [...resolvers, proxy!]) {
      assert.match(readFileSync(`/proc/${pid}/limits`, 'utf8'), /Max core file size\s+unlimited/);
      assert.equal(readlinkSync(`/proc/${pid}/cwd`), '/');
    }
    const before = cores();
    const shim = shimOf(target);
    for (const pid of [...resolvers, proxy!, shim]) process.kill(pid, 'SIGSEGV');
    await eventually('they have ended', async () => {
      await Promise.resolve();
      return [...resolvers, proxy!, shim].every((pid) => commandOf(String(pid)) === '') || undefined;
    });

    assert.deepEqual(cores(), before);
  });
});

/** Where the kernel puts memory of the processes above, as long as it is told no other place; with the time of its writing. */
function cores(): string[] {
  const names = readdirSync('/').filter((name) => name.startsWith('core'));
  return names.map((name) => `${name} ${statSync(join('/', name)).mtimeMs}`);
}

function commandOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
  } catch {
    return ''; // it has ended meanwhile
  }
}
