import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';

import type { Inspect } from '@gantry/engine/containers/schema.ts';
import { busyboxLayer, imageArchive } from '@gantry/testing/busybox-image.ts';
import { Session } from '@gantry/testing/streams/session.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

type Event = { Type: string; Action: string; Actor: { ID: string; Attributes: Record<string, string> } };
type Message = { message: string };

suite('the life of a container', { concurrency: false }, () => {
  let engine: TestEngine;
  before(async () => {
    engine = await TestEngine.start();
  });
  after(async () => await engine[Symbol.asyncDispose]());

  async function inspect(ref: string): Promise<Inspect> {
    return (await engine.get<Inspect>(`/containers/${ref}/json`)).body;
  }

  /** Events of a container so far, also those of its networks and volumes. */
  async function eventsOf(id: string): Promise<Event[]> {
    const until = Math.floor(Date.now() / 1000) + 1;
    const { raw } = await engine.get(`/events?since=1&until=${until}`);
    const lines = raw.toString().split('\n');
    const events = lines.filter((line) => line.trim() !== '').map((line) => JSON.parse(line) as Event);
    return events.filter(({ Actor }) => Actor.ID === id || Actor.Attributes.container === id);
  }

  /** The code of the last run: a wait ends with each of them. */
  async function waitForLast(id: string): Promise<number> {
    const code = await engine.wait(id);
    return (await inspect(id)).State.Running ? await waitForLast(id) : code;
  }

  /** Starts a container that ends with 7 on a signal; returns when it is prepared for it. */
  async function runTrapping(signal: string, Image = 'busybox'): Promise<string> {
    const id = await engine.run(['sh', '-c', `trap "exit 7" ${signal}; echo ready; while :; do sleep 0.05; done`], {
      Image,
    });
    const { socket } = await engine.hijack(`/containers/${id}/attach?logs=1&stream=1&stdout=1`);
    await new Session(socket).saw('ready');
    socket.destroy();
    return id;
  }

  const names = (events: Event[]): string[] => events.map(({ Type, Action }) => `${Type} ${Action}`);

  test("run, wait and remove emit dockerd's events, in its order", async () => {
    const id = await engine.run(['sh', '-c', 'exit 3'], { HostConfig: { Binds: ['told:/v'] } });
    const code = await engine.wait(id);
    const { status } = await engine.delete(`/containers/${id}`);

    assert.deepEqual([code, status], [3, 204]);
    const events = await eventsOf(id);
    assert.deepEqual(names(events), [
      'container create',
      'network connect',
      'volume mount',
      'container start',
      'container die',
      'network disconnect',
      'volume unmount',
      'container destroy',
    ]);
    assert.equal(events.find(({ Action }) => Action === 'die')?.Actor.Attributes.exitCode, '3');
  });

  test('nothing of a removed container stays on the disk', async () => {
    const id = await engine.run(['true']);
    await engine.wait(id);

    await engine.delete(`/containers/${id}`);

    assert.equal((await engine.get(`/containers/${id}/json`)).status, 404);
    await engine.kill('SIGTERM'); // it finishes what it does in the background
    await engine.startAgain();
    for (const folder of ['containers', 'writable']) assert.equal(existsSync(join(engine.dataRoot, folder, id)), false);
  });

  test('a second start answers 304', async () => {
    const id = await engine.run(['sleep', '1000']);

    assert.equal((await engine.post(`/containers/${id}/start`)).status, 304);
  });

  test('a stop sends the stop signal and then kills', async () => {
    const polite = await engine.run(['sh', '-c', 'trap "exit 7" USR1; while :; do sleep 0.05; done'], {
      StopSignal: 'SIGUSR1',
    });
    const deaf = await engine.run(['sh', '-c', 'trap "" TERM; while :; do sleep 1; done']);

    const statuses = await Promise.all(
      [`${polite}/stop?t=20`, `${deaf}/stop?t=0`].map(
        async (path) => (await engine.post(`/containers/${path}`)).status,
      ),
    );

    assert.deepEqual(statuses, [204, 204]);
    assert.equal((await inspect(polite)).State.ExitCode, 7);
    assert.equal((await inspect(deaf)).State.ExitCode, 137);
    const told = names(await eventsOf(deaf));
    assert.deepEqual(told.slice(told.indexOf('container kill')), [
      'container kill',
      'container kill',
      'container die',
      'network disconnect',
      'container stop',
    ]);
  });

  test('a second stop answers 304', async () => {
    const id = await engine.run(['sleep', '1000']);
    await engine.post(`/containers/${id}/stop?t=0`);

    const answer = await engine.post(`/containers/${id}/stop`);

    assert.equal(answer.status, 304);
  });

  test('stops at the same time all wait for the one end', async () => {
    const id = await engine.run(['sleep', '1000']);

    const answers = await Promise.all([1, 2, 3].map(async () => await engine.post(`/containers/${id}/stop?t=1`)));

    assert.deepEqual(
      answers.map(({ status }) => status),
      [204, 204, 204],
    );
    assert.equal((await inspect(id)).State.Status, 'exited');
  });

  test('a kill waits for the end, another signal does not', async () => {
    const id = await engine.run(['sh', '-c', 'trap "echo hup" HUP; while :; do sleep 0.05; done']);

    assert.equal((await engine.post(`/containers/${id}/kill?signal=HUP`)).status, 204);
    assert.equal((await inspect(id)).State.Running, true);
    assert.equal((await engine.post(`/containers/${id}/kill`)).status, 204);

    const { State } = await inspect(id);
    assert.deepEqual([State.Status, State.ExitCode], ['exited', 137]);
  });

  test('a kill of a stopped container is refused, and so is an unknown signal', async () => {
    const id = await engine.create(['true']);

    const stopped = await engine.post<Message>(`/containers/${id}/kill`);
    const unknown = await engine.post<Message>(`/containers/${id}/kill?signal=NONE`);

    assert.equal(stopped.status, 500);
    assert.match(stopped.body.message, /is not running/);
    assert.equal(unknown.status, 400);
  });

  test('POST /containers/{id}/kill: a number has no SIG before it', async () => {
    const id = await runTrapping('42');

    const refused = await engine.post<Message>(`/containers/${id}/kill?signal=SIG42`);
    assert.deepEqual([refused.status, refused.body.message], [400, 'Invalid signal: SIG42']);
    assert.equal((await inspect(id)).State.Running, true);

    assert.equal((await engine.post(`/containers/${id}/kill?signal=42`)).status, 204);
    assert.equal(await engine.wait(id), 7);
  });

  test('an invalid stop signal is refused at the creation, and counts as SIGTERM in an image', async () => {
    const archive = imageArchive(busyboxLayer(), ['odd-signal:latest'], { StopSignal: 'SIG42' });
    assert.equal((await engine.post('/images/load?quiet=1', archive)).status, 200);

    const body = { Image: 'busybox', Cmd: ['true'], StopSignal: 'SIG42' };
    const own = await engine.post<Message>('/containers/create', body);
    assert.deepEqual([own.status, own.body.message], [400, 'Invalid signal: SIG42']);

    const id = await runTrapping('TERM', 'odd-signal');
    assert.equal((await engine.post(`/containers/${id}/stop?t=60`)).status, 204);
    assert.equal((await inspect(id)).State.ExitCode, 7);
  });

  test('a paused container does nothing until it goes on', async () => {
    const id = await engine.run(['sleep', '1000']);

    assert.equal((await engine.post(`/containers/${id}/pause`)).status, 204);
    assert.equal((await inspect(id)).State.Status, 'paused');
    assert.equal((await engine.post(`/containers/${id}/pause`)).status, 500);
    assert.equal((await engine.post(`/containers/${id}/start`)).status, 500);
    assert.equal((await engine.post(`/containers/${id}/unpause`)).status, 204);

    assert.equal((await inspect(id)).State.Status, 'running');
    assert.equal((await engine.post(`/containers/${id}/unpause`)).status, 500);
  });

  test('a paused container can be stopped', async () => {
    const id = await engine.run(['sleep', '1000']);
    await engine.post(`/containers/${id}/pause`);

    const { status } = await engine.post(`/containers/${id}/stop?t=1`);

    assert.equal(status, 204);
    assert.equal((await inspect(id)).State.Status, 'exited');
  });

  test('a restart is a stop and a start', async () => {
    const id = await engine.run(['sleep', '1000']);
    const before = (await inspect(id)).State;

    assert.equal((await engine.post(`/containers/${id}/restart?t=0`)).status, 204);

    const { State } = await inspect(id);
    assert.equal(State.Running, true);
    assert.notEqual(State.Pid, before.Pid);
    const told = names(await eventsOf(id));
    assert.deepEqual(told.slice(-2), ['container start', 'container restart']);
  });

  test('a container runs again with the files of its last run', async () => {
    const id = await engine.run(['sh', '-c', 'cat /seen; echo more >>/seen']);
    await engine.wait(id);

    await engine.post(`/containers/${id}/start`);
    await engine.wait(id);

    assert.equal((await engine.output(id)).stdout, 'more\n');
  });

  test('a running container is only removed by force', async () => {
    const id = await engine.run(['sleep', '1000']);

    const refused = await engine.delete<Message>(`/containers/${id}`);
    const forced = await engine.delete(`/containers/${id}?force=1`);

    assert.equal(refused.status, 409);
    assert.match(refused.body.message, /You cannot remove a running container/);
    assert.equal(forced.status, 204);
  });

  for (const [what, Cmd, code, message] of [
    ['a missing command', ['/nowhere'], 127, /no such file or directory/],
    ['a command that is not in the path', ['nowhere'], 127, /executable file not found/],
    ['a command that is a folder', ['/etc'], 126, /permission denied|is a directory/],
    ['an argument of 200 KB', ['echo', 'x'.repeat(200_000)], 126, /exec echo: argument list too long/],
  ] as const) {
    test(`${what} is told with the code ${code}`, async () => {
      const id = await engine.create(Cmd);

      const answer = await engine.post<Message>(`/containers/${id}/start`);

      assert.equal(answer.status, 500);
      assert.match(answer.body.message, message);
      const { State, NetworkSettings } = await inspect(id);
      assert.deepEqual([State.Status, State.ExitCode, State.Running], ['created', code, false]);
      assert.match(State.Error, message);
      assert.equal(NetworkSettings.IPAddress, '');
      const died = (await eventsOf(id)).find(({ Action }) => Action === 'die');
      assert.equal(died?.Actor.Attributes.exitCode, String(code));
    });
  }

  test('a port that is taken gives a clear error and no half-started container', async () => {
    const first = await engine.run(['sleep', '1000'], {
      HostConfig: { PortBindings: { '80/tcp': [{ HostPort: '18181' }] } },
    });
    const second = await engine.create(['sleep', '1000'], {
      HostConfig: { PortBindings: { '80/tcp': [{ HostPort: '18181' }] } },
    });

    const answer = await engine.post<Message>(`/containers/${second}/start`);

    assert.equal(answer.status, 500);
    assert.match(answer.body.message, /port is already allocated/);
    assert.equal((await inspect(second)).State.Running, false);
    await engine.delete(`/containers/${first}?force=1`);
    assert.equal((await engine.post(`/containers/${second}/start`)).status, 204);
  });

  test('a rename is seen by both names', async () => {
    const id = await engine.create(['true'], {}, 'old-name');
    await engine.create(['true'], {}, 'taken-name');

    const statuses = [];
    for (const name of ['taken-name', 'old-name', '.a', '', 'new-name']) {
      statuses.push((await engine.post(`/containers/old-name/rename?name=${name}`)).status);
    }

    assert.deepEqual(statuses, [409, 409, 400, 400, 204]);
    assert.equal((await inspect('new-name')).Id, id);
    assert.equal((await engine.get('/containers/old-name/json')).status, 404);
  });

  test('on-failure starts again as often as it is told', async () => {
    const RestartPolicy = { Name: 'on-failure', MaximumRetryCount: 2 };
    const id = await engine.run(['sh', '-c', 'echo again; exit 5'], { HostConfig: { RestartPolicy } });

    assert.equal(await waitForLast(id), 5);

    const { State, RestartCount } = await inspect(id);
    assert.deepEqual([State.Status, RestartCount], ['exited', 2]);
    assert.equal((await engine.output(id)).stdout, 'again\nagain\nagain\n');
  });

  test('on-failure leaves a success alone', async () => {
    const id = await engine.run(['true'], { HostConfig: { RestartPolicy: { Name: 'on-failure' } } });

    assert.equal(await engine.wait(id), 0);
    assert.equal((await inspect(id)).State.Status, 'exited');
  });

  test('a stop ends a container that would start again', async () => {
    const id = await engine.run(['false'], { HostConfig: { RestartPolicy: { Name: 'always' } } });
    const waiting = engine.wait(id);

    await engine.post(`/containers/${id}/stop?t=0`);

    assert.ok([1, 137].includes(await waiting)); // killed if the stop came before its own end
    assert.equal((await inspect(id)).State.Status, 'exited');
  });

  test('twenty starts at once all run', async () => {
    const ids = await Promise.all(Array.from({ length: 20 }, async () => await engine.create(['sh', '-c', 'exit 9'])));

    const codes = await Promise.all(
      ids.map(async (id) => {
        await engine.post(`/containers/${id}/start`);
        return await engine.wait(id);
      }),
    );

    assert.deepEqual(new Set(codes), new Set([9]));
  });

  test('start, stop and remove at once leave no half state', async () => {
    const id = await engine.create(['sleep', '1000']);

    await Promise.all([
      engine.post(`/containers/${id}/start`),
      engine.post(`/containers/${id}/stop?t=0`),
      engine.post(`/containers/${id}/restart?t=0`),
      engine.delete(`/containers/${id}?force=1`),
    ]);

    const left = await engine.get(`/containers/${id}/json`);
    if (left.status === 200) assert.equal((await engine.delete(`/containers/${id}?force=1`)).status, 204);
    assert.equal((await engine.get(`/containers/${id}/json`)).status, 404);
  });
});
