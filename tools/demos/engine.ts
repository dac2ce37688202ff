/** `./gantry demo`: a daemon in a temporary place, real containers through the typed client, and nothing left behind. */
import { once } from 'node:events';
import { Writable } from 'node:stream';

import { Connection } from '@gantry/client/connection.ts';
import * as containers from '@gantry/client/containers.ts';
import { FrameReader } from '@gantry/client/frames.ts';
import { loadImages } from '@gantry/client/images.ts';
import { jsonLines } from '@gantry/client/json-lines.ts';
import { events, version, type EventMessage } from '@gantry/client/system.ts';
import { busyboxArchive } from '@gantry/testing/busybox-image.ts';
import { OwnEngine } from '@gantry/testing/own-engine.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

import { play, printTimes, say, step } from './steps.ts';

const isRoot = process.getuid?.() === 0;
const socket = isRoot ? '/run/gantry/gantry.sock' : '$XDG_RUNTIME_DIR/gantry/gantry.sock';

await play(main);

async function main(): Promise<void> {
  await using daemon = await step('start the daemon', async () =>
    isRoot ? await TestEngine.start({ image: false }) : await OwnEngine.start(),
  );
  using engine = new Connection({ kind: 'unix', socketPath: daemon.socketPath });
  say(`Gantry ${(await version(engine)).Version} listens on ${daemon.socketPath}`);

  const log = await watchEvents(engine);

  await step('load an image made of busybox-static', async () => {
    await loadImages(engine, await busyboxArchive(), { quiet: false }, (line) => say(line));
  });

  await step('run a container: create, start, output, exit code, remove', async () => {
    const { stdout, code } = await run(engine, [
      'sh',
      '-c',
      'echo "Hello from $(hostname), kernel $(uname -r)"; exit 3',
    ]);
    say(`${stdout.trim()} (exit code ${code})`);
  });

  await step('talk with a container over attach', async () => {
    const { Id } = await containers.create(engine, {
      Image: 'busybox',
      Cmd: ['sh', '-c', 'read name; echo "Nice to meet you, $name."'],
      OpenStdin: true,
      StdinOnce: true,
    });
    const { socket } = await containers.attach(engine, Id, { stream: true, stdin: true, stdout: true });
    const answer = readFrames(socket);
    await containers.start(engine, Id);
    socket.write('Ada\n');
    say(`we say "Ada", it says "${(await answer).trim()}"`);
    await containers.wait(engine, Id);
    await containers.remove(engine, Id);
  });

  await step('publish a port and fetch from it', async () => {
    const { Id } = await containers.create(engine, {
      Image: 'busybox',
      Cmd: [
        'sh',
        '-c',
        'mkdir /www && echo "served from a container" > /www/index.html && exec httpd -f -p 80 -h /www',
      ],
      ExposedPorts: { '80/tcp': {} },
      HostConfig: { PortBindings: { '80/tcp': [{ HostIp: '127.0.0.1', HostPort: '' }] } },
    });
    await containers.start(engine, Id);
    const { NetworkSettings } = await containers.inspect(engine, Id);
    const port = NetworkSettings.Ports['80/tcp']?.[0]?.HostPort ?? '';
    say(`http://127.0.0.1:${port} answers: ${(await daemon.fetchText(Number(port))).trim()}`);
    await containers.remove(engine, Id, { force: true, v: true });
  });

  await step('20 containers at once: create, start, wait, remove', async () => {
    const codes = await Promise.all(Array.from({ length: 20 }, async () => (await run(engine, ['true'])).code));
    say(`${codes.filter((code) => code === 0).length} of 20 ended with 0`);
  });

  say(`\nEvents meanwhile: ${summary(log)}`);
  printTimes();
  console.log(`
What to try next:
  ./gantry daemon                                        the engine, on unix://${socket}
  ./gantry load -i image.tar && ./gantry run -it IMAGE sh
  DOCKER_HOST=unix://${socket} docker ps   the docker command line, unmodified
  ./gantry test                                          all tests, on real containers`);
}

async function run(engine: Connection, command: string[]): Promise<{ stdout: string; code: number }> {
  const { Id } = await containers.create(engine, { Image: 'busybox', Cmd: command });
  const { socket } = await containers.attach(engine, Id, { stream: true, stdout: true, stderr: true });
  const output = readFrames(socket);
  await containers.start(engine, Id);
  const code = await containers.wait(engine, Id);
  const stdout = await output;
  await containers.remove(engine, Id);
  return { stdout, code };
}

async function readFrames(socket: NodeJS.ReadableStream): Promise<string> {
  let text = '';
  const frames = new FrameReader((_stream, piece) => (text += piece.toString()));
  socket.pipe(frames).pipe(new Writable({ write: (_chunk, _encoding, done) => done() }));
  await once(socket, 'end');
  return text;
}

async function watchEvents(engine: Connection): Promise<EventMessage[]> {
  const seen: EventMessage[] = [];
  const stream = await events(engine);
  stream.on('error', () => undefined); // it ends with the daemon
  void (async () => {
    for await (const event of jsonLines<EventMessage>(stream)) seen.push(event);
  })().catch(() => undefined);
  return seen;
}

function summary(seen: readonly EventMessage[]): string {
  const counts = new Map<string, number>();
  for (const { Type, Action } of seen) counts.set(`${Type} ${Action}`, (counts.get(`${Type} ${Action}`) ?? 0) + 1);
  return [...counts].map(([name, count]) => `${count} × ${name}`).join(', ');
}
