import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';

import { Session } from '@gantry/testing/streams/session.ts';

import { BothEngines, COMMAND_LINES, docker, type Side } from './both-engines.ts';

/** Writes `marker` at each SIGUSR1. */
const COMMAND = ['sh', '-c', `trap 'echo marker' USR1; echo ready; while :; do sleep 1000 & wait $!; done`];
const ENDS_AT_SIGNAL = ['sh', '-c', `trap 'exit 3' USR1; echo ready; while :; do sleep 1000 & wait $!; done`];
const BOOLEANS = [false, true];

type Kind = Readonly<{ Tty: boolean; OpenStdin: boolean; StdinOnce: boolean }>;
type Query = Readonly<{ logs?: boolean; stream?: boolean; stdin?: boolean; stdout?: boolean }>;

const KINDS = BOOLEANS.flatMap((Tty) =>
  BOOLEANS.flatMap((OpenStdin) => BOOLEANS.map((StdinOnce): Kind => ({ Tty, OpenStdin, StdinOnce }))),
);
const QUERIES: readonly Query[] = [
  { stream: true, stdin: true, stdout: true },
  { logs: true, stream: true, stdin: true, stdout: true },
  { stream: true, stdin: true },
  { stream: true, stdout: true },
  { logs: true, stdin: true, stdout: true },
  { stream: true },
];

/** Whether the client's half-close ends its session, rather than the container's end. */
function endsWithStdin({ Tty, OpenStdin, StdinOnce }: Kind, query: Query, wasRunning: boolean): boolean {
  const { stream = false, stdin = false, stdout = false } = query;
  if (!stream) return true;
  if (StdinOnce && !Tty) return !stdout && !wasRunning;
  return (stdin && OpenStdin) || !stdout;
}

suite(
  'the end of an attach whose client half-closes, on our daemon and on dockerd',
  { concurrency: 4, timeout: 900_000 },
  () => {
    let engines: BothEngines;
    before(async () => {
      engines = await BothEngines.start();
    });
    after(async () => await engines[Symbol.asyncDispose]());

    async function create({ api }: Side, kind: Kind, Cmd = COMMAND, name = ''): Promise<string> {
      const body = { Image: 'busybox', Cmd, HostConfig: { NetworkMode: 'none' }, AttachStdout: true, ...kind };
      return (await api.post<{ Id: string }>(`/containers/create?name=${name}`, body)).body.Id;
    }

    async function open({ api }: Side, id: string, query: Query): Promise<Session> {
      return new Session((await api.hijack(`/containers/${id}/attach`, { query })).socket);
    }

    /** Starts the container, and waits until it handles the signal. */
    async function start(side: Side, id: string): Promise<void> {
      const output = await open(side, id, { stream: true, stdout: true });
      assert.equal((await side.api.post(`/containers/${id}/start`)).status, 204);
      await output.saw('ready');
      output.socket.destroy();
    }

    /** One session of each query: those that end do, and the others get the output until the container's end. */
    async function check(side: Side, kind: Kind, wasRunning: boolean, stdin: string): Promise<void> {
      const id = await create(side, kind);
      if (wasRunning) await start(side, id);
      const sessions = await Promise.all(
        QUERIES.map(async (query) => ({ query, session: await open(side, id, query) })),
      );
      const ending = sessions.filter(({ query }) => endsWithStdin(kind, query, wasRunning));
      const lasting = sessions.filter((one) => !ending.includes(one));
      const staysOpen = kind.Tty || !kind.StdinOnce;

      for (const { session } of sessions) session.socket.end(stdin);
      if (!wasRunning && stdin === '' && staysOpen)
        await Promise.all(ending.map(async ({ session }) => await session.ended));
      if (!wasRunning) await start(side, id);
      await Promise.all(ending.map(async ({ session }) => await session.ended));
      await side.api.post(`/containers/${id}/kill?signal=USR1`);
      for (const { query, session } of lasting) {
        if (query.stdout === true) await session.saw('marker');
        assert.equal(session.socket.readableEnded, false, JSON.stringify(query));
      }
      await side.api.delete(`/containers/${id}?force=1`);
      await Promise.all(lasting.map(async ({ session }) => await session.ended));
    }

    for (const kind of KINDS) {
      for (const wasRunning of BOOLEANS) {
        for (const stdin of ['', 'typed\n']) {
          const when = wasRunning ? 'a running' : 'a created';
          test(`${JSON.stringify(kind)}, ${when} container, ${JSON.stringify(stdin)}`, async () => {
            await engines.both(async (side) => await check(side, kind, wasRunning, stdin));
          });
        }
      }
    }

    // `docker attach` inspects the container again behind its head, so no step tells when it may end.
    for (const [index, kind] of KINDS.entries()) {
      for (const [program, flags] of COMMAND_LINES.flatMap((each) =>
        ['-ai', '-a'].map((flag) => [each, flag] as const),
      )) {
        test(`${program} start ${flags}, ${JSON.stringify(kind)}`, async () => {
          const name = `start${flags}-${index}-${COMMAND_LINES.indexOf(program)}`;

          const { ours, theirs } = await engines.both(async (side) => {
            const id = await create(side, kind, ENDS_AT_SIGNAL, name);
            const output = await open(side, id, { stream: true, stdout: true });
            const client = docker(side, ['start', flags, name], program);
            await output.saw('ready');
            await side.api.post(`/containers/${id}/kill?signal=USR1`);
            const { code, stderr } = await client;
            return { code, stderr };
          });

          assert.deepEqual(ours, theirs);
          assert.equal(ours.code, 3);
        });
      }
    }

    test('the second command line is 20.10', async () => {
      const { stdout } = await docker(engines.ours, ['version', '--format', '{{.Client.Version}}'], COMMAND_LINES[1]);

      assert.match(stdout, /^20\.10\./);
    });
  },
);
