import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { after, before, suite, test } from 'node:test';

import type { Inspect } from '@gantry/engine/containers/schema.ts';
import type { ExecInspect } from '@gantry/engine/exec/schema.ts';
import { Api } from '@gantry/testing/api.ts';
import { Session } from '@gantry/testing/streams/session.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

type Message = { message: string };
type Event = { Action: string; Actor: { Attributes: Record<string, string> } };

suite('processes in running containers', { concurrency: false }, () => {
  let engine: TestEngine;
  let container: string;
  before(async () => {
    engine = await TestEngine.start();
    container = await engine.run(['sleep', '1000'], { Env: ['FROM=container'], WorkingDir: '/tmp' });
  });
  after(async () => await engine[Symbol.asyncDispose]());

  async function create(body: object, ref = container): Promise<string> {
    const answer = await engine.post<{ Id: string }>(`/containers/${ref}/exec`, body);
    assert.equal(answer.status, 201, answer.raw.toString());
    return answer.body.Id;
  }

  async function start(id: string, body: object = {}): Promise<Session> {
    return new Session((await engine.hijack(`/exec/${id}/start`, { body })).socket);
  }

  async function inspect(id: string): Promise<ExecInspect> {
    return (await engine.get<ExecInspect>(`/exec/${id}/json`)).body;
  }

  /** Runs to the end, with both outputs attached. */
  async function run(body: object): Promise<{ stdout: string; stderr: string; code: number | null }> {
    const id = await create({ AttachStdout: true, AttachStderr: true, ...body });
    const session = await start(id);
    await session.ended;
    return { ...session.output, code: (await inspect(id)).ExitCode };
  }

  async function execEvents(id: string): Promise<Event[]> {
    const now = Math.floor(Date.now() / 1000) + 1;
    const { raw } = await engine.get(`/events?since=1&until=${now}`);
    return raw
      .toString()
      .split('\n')
      .filter((line) => line.trim() !== '')
      .map((line) => JSON.parse(line) as Event)
      .filter(({ Actor }) => Actor.Attributes['execID'] === id);
  }

  test('outputs are framed, and the exit code is known when the stream ends', async () => {
    const result = await run({ Cmd: ['sh', '-c', 'echo out; echo err >&2; exit 3'] });

    assert.deepEqual(result, { stdout: 'out\n', stderr: 'err\n', code: 3 });
  });

  test('without an upgrade the stream begins with 200 and is not chunked', async () => {
    const id = await create({ Cmd: ['echo', 'x'], AttachStdout: true });

    const answer = await engine.post(`/exec/${id}/start`, {});

    assert.equal(answer.status, 200);
    assert.equal(answer.headers['transfer-encoding'], undefined);
    assert.equal(answer.headers['content-type'], 'application/vnd.engine.raw-stream');
    assert.equal(answer.raw.subarray(8).toString(), 'x\n');
  });

  test('stdin reaches the process and ends with the half-close', async () => {
    const id = await create({ Cmd: ['sh', '-c', 'cat; echo over'], AttachStdin: true, AttachStdout: true });
    const session = await start(id);

    session.socket.end('typed\n');
    await session.ended;

    assert.deepEqual(session.output, { stdout: 'typed\nover\n', stderr: '' });
  });

  test('a terminal is raw, has its size from before the start, and can be resized', async () => {
    const id = await create({ Cmd: ['sh'], AttachStdin: true, AttachStdout: true, AttachStderr: true, Tty: true });
    const early = await engine.post(`/exec/${id}/resize?h=31&w=97`);
    const session = await start(id, { Tty: true });

    session.type('stty size; tty; echo $TERM\r');
    await session.saw('31 97\r\n/dev/pts/');
    await session.saw('xterm\r\n');
    const late = await engine.post(`/exec/${id}/resize?h=41&w=98`);
    session.type('stty size; exit 6\r');
    await session.saw('41 98');
    await session.ended;

    assert.deepEqual([early.status, late.status], [201, 201]);
    assert.equal((await inspect(id)).ExitCode, 6);
    assert.equal((await engine.post(`/exec/${id}/resize?h=1&w=1`)).status, 404);
  });

  test('detach keys leave the process running', async () => {
    const body = { AttachStdin: true, AttachStdout: true, Tty: true, DetachKeys: 'ctrl-a,d' };
    const id = await create({ Cmd: ['cat'], ...body });
    const session = await start(id, { Tty: true });
    session.type('x\r');
    await session.saw('x\r\nx\r\n');

    session.type('\u0001d');
    await session.ended;

    const { Running, ExitCode } = await inspect(id);
    assert.deepEqual([Running, ExitCode], [true, null]);
    assert.ok((await execEvents(id)).some(({ Action }) => Action === 'exec_detach'));
    const { body: shown } = await engine.get<Inspect>(`/containers/${container}/json`);
    assert.ok(shown.ExecIDs?.includes(id));
  });

  test('the half-close of a terminal ends the session, and the process goes on', async () => {
    const id = await create({ Cmd: ['cat'], AttachStdin: true, AttachStdout: true, Tty: true });
    const session = await start(id, { Tty: true });

    session.socket.end();
    await session.ended;

    assert.equal((await inspect(id)).Running, true);
  });

  test('the form of the stream is the one asked for at the start', async () => {
    const command = ['sh', '-c', 'printf x'];
    const framed = await start(await create({ Cmd: command, AttachStdout: true, Tty: true }), { Tty: false });
    const raw = await start(await create({ Cmd: command, AttachStdout: true }), { Tty: true });

    await Promise.all([framed.ended, raw.ended]);

    assert.deepEqual(framed.output, { stdout: 'x', stderr: '' });
    assert.equal(raw.text, 'x');
  });

  test('a detached start answers when the command runs', async () => {
    const id = await create({ Cmd: ['sh', '-c', 'cat; sleep 1000'], AttachStdin: true, AttachStdout: true });

    const answer = await engine.post(`/exec/${id}/start`, { Detach: true });

    assert.deepEqual([answer.status, answer.raw.length], [200, 0]);
    const { Running, Pid } = await inspect(id);
    assert.equal(Running, true);
    assert.ok(Pid > 0);
  });

  test('an inspect shows all fields', async () => {
    const id = await create({
      Cmd: ['a', 'b', 'c'],
      AttachStdin: true,
      AttachStderr: true,
      User: 'root',
      Privileged: true,
    });

    const shown = await inspect(id);

    assert.deepEqual(shown, {
      ID: id,
      Running: false,
      ExitCode: null,
      ProcessConfig: { tty: false, entrypoint: 'a', arguments: ['b', 'c'], privileged: true, user: 'root' },
      OpenStdin: true,
      OpenStderr: true,
      OpenStdout: false,
      CanRemove: false,
      ContainerID: container,
      DetachKeys: '',
      Pid: 0,
    });
  });

  test('a process has the container environment, folder and user, or its own', async () => {
    const plain = await run({ Cmd: ['sh', '-c', 'echo $FROM $HOME $PWD $(id -u):$(id -g) $TERM.'] });
    const own = await run({
      Cmd: ['sh', '-c', 'echo $FROM $MORE $PWD $(id -u):$(id -g)'],
      User: '1234:567',
      Env: ['FROM=exec', 'MORE=1'],
      WorkingDir: '/proc',
    });

    assert.equal(plain.stdout, 'container /root /tmp 0:0 .\n');
    assert.equal(own.stdout, 'exec 1 /proc 1234:567\n');
  });

  test('a privileged process has every capability that the daemon has', async () => {
    const command = ['sh', '-c', 'grep CapEff /proc/self/status | cut -f2'];

    const plain = await run({ Cmd: command });
    const privileged = await run({ Cmd: command, Privileged: true });
    const user = await run({ Cmd: command, User: '1000' });

    assert.equal(plain.stdout, '00000000a80425fb\n');
    assert.ok(BigInt(`0x${privileged.stdout.trim()}`) > 0xa80425fbn);
    assert.equal(user.stdout, '0000000000000000\n');
  });

  test('a command that cannot be started is reported in the stream with its code', async (t) => {
    const cases: [object, RegExp, code?: number][] = [
      [{ Cmd: ['nosuch'] }, /^OCI runtime exec failed: exec failed: .*"nosuch": executable file not found/, 127],
      [{ Cmd: ['/proc'] }, /permission denied/],
      [{ Cmd: ['true', 'x'.repeat(200_000)] }, /^OCI runtime exec failed: .*exec true: argument list too long/],
      [{ Cmd: ['true'], WorkingDir: '/nosuch' }, /no such file or directory/, 127],
      [
        { Cmd: ['true'], WorkingDir: 'tmp' },
        /^OCI runtime exec failed: exec failed: Cwd must be an absolute path/,
        128,
      ],
      [{ Cmd: [''] }, /exec: "": executable file not found in \$PATH/, 127],
    ];
    for (const [body, expected, code = 126] of cases) {
      await t.test(JSON.stringify(body).slice(0, 80), async () => {
        const result = await run(body);

        assert.equal(result.code, code);
        assert.match(result.stdout, expected);
      });
    }
    await t.test('detached it is the answer', async () => {
      const id = await create({ Cmd: ['nosuch'] });

      const answer = await engine.post<Message>(`/exec/${id}/start`, { Detach: true });

      assert.equal(answer.status, 400);
      assert.match(answer.body.message, /executable file not found/);
      assert.equal((await inspect(id)).ExitCode, 127);
    });
  });

  test('a user or group that the container does not have is refused at create from 1.42 on, else at the start', async () => {
    const newer = new Api(engine.socketPath, '/v1.42');
    const cases = {
      nosuch: 'user nosuch: no matching entries in passwd file',
      '0:nosuch': 'group nosuch: no matching',
    };
    for (const [User, words] of Object.entries(cases)) {
      const answer = await newer.post<Message>(`/containers/${container}/exec`, { Cmd: ['true'], User });
      const { code, stdout } = await run({ Cmd: ['true'], User });

      assert.equal(answer.status, 400);
      assert.ok(answer.body.message.startsWith(`unable to find ${words}`), answer.body.message);
      assert.equal(code, 126);
      assert.ok(stdout.includes(`unable to find ${words}`), stdout);
    }
  });

  test('a second start is refused', async () => {
    const id = await create({ Cmd: ['sleep', '1000'] });
    await engine.post(`/exec/${id}/start`, { Detach: true });

    const again = await engine.post<Message>(`/exec/${id}/start`, {});

    assert.equal(again.status, 409);
    assert.match(again.body.message, /is already running/);
  });

  test('an invalid request is refused before anything happens', async () => {
    const created = await engine.create(['true']);
    const cases: [string, object, number][] = [
      ['/containers/nope/exec', { Cmd: ['true'] }, 404],
      [`/containers/${created}/exec`, { Cmd: ['true'] }, 409],
      [`/containers/${container}/exec`, {}, 400],
      [`/containers/${container}/exec`, { Cmd: [] }, 400],
      [`/containers/${container}/exec`, { Cmd: null }, 400],
      [`/containers/${container}/exec`, { Cmd: ['true'], DetachKeys: 'invalid' }, 400],
      ['/exec/nope/start', {}, 404],
      ['/exec/nope/resize?h=1&w=1', {}, 404],
    ];
    for (const [path, body, status] of cases) {
      const answer = await engine.post<Message>(path, body);

      assert.equal(answer.status, status, path);
      assert.equal(typeof answer.body.message, 'string');
    }
    assert.equal((await engine.get('/exec/nope/json')).status, 404);
  });

  test('a paused container refuses execs', async () => {
    const paused = await engine.run(['sleep', '1000']);
    const id = await create({ Cmd: ['true'] }, paused);
    await engine.post(`/containers/${paused}/pause`);

    const creation = await engine.post(`/containers/${paused}/exec`, { Cmd: ['true'] });
    const starting = await engine.post(`/exec/${id}/start`, {});
    await engine.post(`/containers/${paused}/unpause`);

    assert.deepEqual([creation.status, starting.status], [409, 409]);
  });

  test('execs end with their container and go with it', async () => {
    const ending = await engine.run(['sleep', '1000']);
    const id = await create({ Cmd: ['sh', '-c', 'echo up; sleep 1000'], AttachStdout: true }, ending);
    const session = await start(id);
    await session.saw('up');

    await engine.post(`/containers/${ending}/kill`);
    await session.ended;

    const { Running, ExitCode } = await inspect(id);
    assert.deepEqual([Running, ExitCode], [false, 137]);
    await engine.delete(`/containers/${ending}`);
    assert.equal((await engine.get(`/exec/${id}/json`)).status, 404);
  });

  test('one that was not started goes with the run of its container, as in dockerd', async () => {
    const stopped = await engine.run(['sleep', '1000']);
    const id = await create({ Cmd: ['true'] }, stopped);
    await engine.post(`/containers/${stopped}/restart?t=0`);

    const { body } = await engine.get<{ ExecIDs: string[] | null }>(`/containers/${stopped}/json`);
    const [found, started] = [await engine.get(`/exec/${id}/json`), await engine.post(`/exec/${id}/start`, {})];

    assert.deepEqual([body.ExecIDs, found.status, started.status], [null, 404, 404]);
    await engine.delete(`/containers/${stopped}?force=1`);
  });

  test('a container between two runs says so', async () => {
    const HostConfig = { RestartPolicy: { Name: 'always' } };
    const restarting = await engine.run(['false'], { HostConfig });
    let message = '';
    while (!message.includes('is restarting, wait until the container is running')) {
      const { body } = await engine.post<{ message?: string }>(`/containers/${restarting}/exec`, { Cmd: ['true'] });
      message = body.message ?? '';
    }
    await engine.delete(`/containers/${restarting}?force=1`);
  });

  test('a string is one command, and the events name it as docker does', async () => {
    const id = await create({ Cmd: 'true' });
    const session = await start(id);
    await session.ended;

    const events = await execEvents(id);

    assert.deepEqual(
      events.map(({ Action }) => Action),
      ['exec_create: true ', 'exec_start: true ', 'exec_die'],
    );
    assert.equal(events[2]?.Actor.Attributes['exitCode'], '0');
  });

  test('an exec lives through the death of the daemon', async () => {
    const living = await create({ Cmd: ['sh', '-c', 'while [ ! -e /tmp/go ]; do sleep 0.02; done; exit 5'] });
    const ended = await create({ Cmd: ['sh', '-c', 'while [ ! -e /tmp/end ]; do sleep 0.02; done; exit 4'] });
    await engine.post(`/exec/${living}/start`, { Detach: true });
    await engine.post(`/exec/${ended}/start`, { Detach: true });
    const { Pid } = await inspect(ended);
    await engine.kill();
    await writeFile(`/proc/${Pid}/root/tmp/end`, '');
    await engine.startAgain();

    const before = await inspect(living);
    const watcher = await create({ Cmd: ['touch', '/tmp/go'] });
    await (
      await start(watcher)
    ).ended;
    while ((await inspect(living)).Running || (await inspect(ended)).Running) {
      await engine.get('/events?since=1&until=2');
    }

    assert.equal(before.Running, true);
    assert.equal((await inspect(living)).ExitCode, 5);
    assert.equal((await inspect(ended)).ExitCode, 4);
  });
});
