import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, suite, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';

import { shimOf } from '@gantry/testing/shim-of.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

import type { EventMessage } from '../../events/schema.ts';
import type { Inspect, Summary } from '../schema.ts';

const SECOND = 1e9;
const OFTEN = SECOND / 5;

type Health = NonNullable<Inspect['State']['Health']>;

suite('health checks', { concurrency: false }, () => {
  let engine: TestEngine;
  before(async () => {
    engine = await TestEngine.start();
  });
  after(async () => await engine[Symbol.asyncDispose]());

  async function checked(script: string, more: object = {}, body: object = {}): Promise<string> {
    const Healthcheck = { Test: ['CMD-SHELL', script], Interval: OFTEN, Retries: 2, ...more };
    return await engine.run(['sleep', '100000'], { Healthcheck, ...body });
  }

  async function inspect(id: string): Promise<Inspect> {
    return (await engine.get<Inspect>(`/containers/${id}/json`)).body;
  }

  async function healthOf(id: string): Promise<Health> {
    const { Health } = (await inspect(id)).State;
    assert.ok(Health, 'it is checked');
    return Health;
  }

  async function until(id: string, isSo: (health: Health) => boolean): Promise<Health> {
    for (;;) {
      const health = await healthOf(id);
      if (isSo(health)) return health;
      await setTimeout(20);
    }
  }

  const results = async (id: string): Promise<string> => (await healthOf(id)).Log.map(({ Start }) => Start).join(' ');
  const isHealthy = ({ Status }: Health): boolean => Status === 'healthy';

  /** So that time for checks has gone by: another container, which is checked as often, has had three more. */
  async function othersAreChecked(): Promise<void> {
    const id = await checked('echo x >>/count; cat /count | wc -l');
    await until(id, ({ Log }) => Number(Log.at(-1)?.Output ?? 0) >= 3);
    await engine.delete(`/containers/${id}?force=1`);
  }

  async function listed(filters: object): Promise<Summary[]> {
    const query = `all=1&filters=${encodeURIComponent(JSON.stringify(filters))}`;
    return (await engine.get<Summary[]>(`/containers/json?${query}`)).body;
  }

  /** Those of a container until now, without what is of an exec. */
  async function eventsOf(id: string): Promise<string[]> {
    const query = `since=1&until=${Math.ceil(Date.now() / 1000) + 1}`;
    const filters = encodeURIComponent(JSON.stringify({ container: [id] }));
    const { raw } = await engine.get(`/events?${query}&filters=${filters}`);
    const events = raw.toString().split('\n').filter(Boolean);
    const actions = events.map((line) => (JSON.parse(line) as EventMessage).Action);
    return actions.filter((action) => !action.startsWith('exec_'));
  }

  async function processesIn(id: string): Promise<string[]> {
    const { body } = await engine.get<{ Processes: string[][] }>(`/containers/${id}/top`);
    return body.Processes.map((words) => words.at(-1)!);
  }

  test('the list shows and filters the health', async () => {
    const fine = await checked('test -e /fine');
    const starting = await checked('true', { Interval: 1000 * SECOND });
    const none = await engine.run(['sleep', '100000']);

    assert.match((await listed({ id: [starting] }))[0]!.Status, /^Up .* \(health: starting\)$/);
    await until(fine, ({ Status }) => Status === 'unhealthy');
    assert.match((await listed({ id: [fine] }))[0]!.Status, /^Up .* \(unhealthy\)$/);
    const ids = async (health: string): Promise<string[]> => (await listed({ health: [health] })).map(({ Id }) => Id);
    assert.deepEqual([await ids('unhealthy'), await ids('starting')], [[fine], [starting]]);
    assert.deepEqual(await ids('none'), [none]);
    await touch(fine, '/fine');
    await until(fine, isHealthy);
    assert.match((await listed({ health: ['healthy'] }))[0]!.Status, /^Up .* \(healthy\)$/);
    assert.deepEqual(await eventsOf(fine), ['create', 'start', 'health_status: unhealthy', 'health_status: healthy']);
    for (const id of [fine, starting, none]) await engine.delete(`/containers/${id}?force=1`);
  });

  async function touch(id: string, path: string): Promise<void> {
    const { body } = await engine.post<{ Id: string }>(`/containers/${id}/exec`, { Cmd: ['touch', path] });
    await engine.post(`/exec/${body.Id}/start`, { Detach: true });
  }

  test('the first check comes when the start period ends, however long its interval', async () => {
    const id = await checked('true', { StartPeriod: SECOND, StartInterval: 100_000 * SECOND });
    await until(id, isHealthy);
  });

  test('one that hangs is killed with its children, and the next one is run', async () => {
    const hang = 'test -e /fine && exit; trap "" TERM; sleep 1111 & sleep 1111';
    const id = await checked(hang, { Timeout: OFTEN, Retries: 1 });

    const [first] = (await until(id, ({ Log }) => Log.length > 0)).Log;
    await touch(id, '/fine');
    await until(id, isHealthy);

    assert.deepEqual([first?.ExitCode, first?.Output], [-1, 'Health check exceeded timeout (200ms)']);
    // Later checks may come too late again on a busy machine.
    const events = (await eventsOf(id)).slice(0, 4);
    assert.deepEqual(events, ['create', 'start', 'health_status: unhealthy', 'health_status: healthy']);
    const processes = await processesIn(id);
    assert.deepEqual(
      processes.filter((words) => words === 'sleep 1111'),
      [],
    );
    await engine.delete(`/containers/${id}?force=1`);
  });

  test('output beyond 4096 bytes is cut, and does not hold up the check', async () => {
    const id = await checked('yes 0123456789 | head -c 1000000');

    const { Log } = await until(id, isHealthy);

    assert.deepEqual([Log[0]!.Output.length, Log[0]!.Output.slice(-8)], [4099, '\n0123...']);
    await engine.delete(`/containers/${id}?force=1`);
  });

  test('a pause ends the checks; after it they go on', async () => {
    const id = await checked('true');
    await until(id, isHealthy);

    await engine.post(`/containers/${id}/pause`);
    const before = await results(id);
    await othersAreChecked();

    assert.equal(await results(id), before);
    assert.equal((await healthOf(id)).Status, 'unhealthy');
    await engine.post(`/containers/${id}/unpause`);
    await until(id, isHealthy);
    await engine.delete(`/containers/${id}?force=1`);
  });

  test('a stop ends the checks; a start begins them, with the results of before', async () => {
    const id = await checked('true');
    const { Log } = await until(id, isHealthy);

    await engine.post(`/containers/${id}/stop?t=0`);
    const stopped = await healthOf(id);
    await othersAreChecked();

    assert.equal(await results(id), stopped.Log.map(({ Start }) => Start).join(' '));
    assert.equal(stopped.Status, 'unhealthy');
    assert.deepEqual(stopped.Log[0], Log[0]);
    await engine.post(`/containers/${id}/start`);
    await until(id, ({ Status, Log: later }) => Status === 'healthy' && later.length > stopped.Log.length);
    await engine.delete(`/containers/${id}?force=1`);
  });

  test('a running check does not delay a stop or a removal', async () => {
    for (const end of [`stop?t=0`, 'restart?t=0', undefined]) {
      const id = await checked('sleep 1111', { Timeout: 1000 * SECOND });
      while ((await processesIn(id)).length < 2) await setTimeout(10);

      if (end !== undefined) assert.equal((await engine.post(`/containers/${id}/${end}`)).status, 204);

      assert.equal((await engine.delete(`/containers/${id}?force=1`)).status, 204);
      assert.equal((await engine.get(`/containers/${id}/json`)).status, 404);
    }
  });

  test('a check leaves no exec behind', async () => {
    const id = await checked('sleep 1111', { Timeout: 1000 * SECOND });
    while ((await processesIn(id)).length < 2) await setTimeout(10);

    assert.equal((await inspect(id)).ExecIDs, null);
    await engine.delete(`/containers/${id}?force=1`);
  });

  test('a container ends when its shim is killed during a check', async () => {
    const id = await checked('sleep 1111', { Timeout: 1000 * SECOND });
    while ((await processesIn(id)).length < 2) await setTimeout(10);

    process.kill(shimOf((await inspect(id)).State.Pid), 'SIGKILL');
    await engine.wait(id);

    const { State } = await inspect(id);
    assert.deepEqual([State.Status, State.Health?.Status, State.Health?.Log], ['exited', 'unhealthy', []]);
    await engine.delete(`/containers/${id}?force=1`);
  });

  test('checks have the limits of their container', async () => {
    const script =
      'grep -E "Cap(Eff|Bnd)|Seccomp:|NoNewPrivs" /proc/self/status; cat /proc/self/oom_score_adj; ulimit -n';
    const HostConfig = { CapDrop: ['CHOWN'], OomScoreAdj: 77, Ulimits: [{ Name: 'nofile', Soft: 99, Hard: 99 }] };
    const body = { Cmd: ['sh', '-c', `${script}; cat /proc/self/cgroup; sleep 100000`], HostConfig };
    const id = await checked(`${script}; cat /proc/self/cgroup`, {}, body);

    const { Log } = await until(id, isHealthy);

    assert.equal(Log[0]!.Output, (await engine.output(id)).stdout);
    await engine.delete(`/containers/${id}?force=1`);
  });

  test('the next daemon knows the health and goes on checking', async () => {
    const id = await checked('test -e /fine');
    const hanging = await checked('sleep 1111', { Timeout: 2 * SECOND });
    await until(id, ({ Status }) => Status === 'unhealthy');
    while ((await processesIn(hanging)).length < 2) await setTimeout(10);

    await engine.kill();
    await engine.startAgain();

    const before = await healthOf(id);
    assert.equal(before.Status, 'unhealthy');
    await touch(id, '/fine');
    await until(id, isHealthy);
    assert.equal((await healthOf(id)).FailingStreak, 0);
    await until(hanging, ({ Log }) => Log.some(({ ExitCode }) => ExitCode === -1));
    for (const each of [id, hanging]) await engine.delete(`/containers/${each}?force=1`);
    assert.doesNotMatch(readFileSync(`${engine.directory}/log`, 'utf8'), /check the health/);
  });

  test('a container that ended while there was no daemon is not checked', async () => {
    const id = await checked('true');
    await until(id, isHealthy);
    const pid = (await inspect(id)).State.Pid;

    await engine.kill();
    process.kill(pid, 'SIGKILL');
    await engine.startAgain();
    await engine.wait(id);

    assert.equal((await healthOf(id)).Status, 'unhealthy');
    await engine.delete(`/containers/${id}?force=1`);
  });
});
