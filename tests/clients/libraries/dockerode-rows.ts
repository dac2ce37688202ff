import { PassThrough, type Readable } from 'node:stream';
import { buffer, text } from 'node:stream/consumers';

import { tarList } from '@gantry/testing/archives/tar-list.ts';
import { TarWriter } from '@gantry/testing/archives/tar-writer.ts';
import type Docker from 'dockerode';

/** The calls of a program that uses dockerode, with their results: the same from both engines. */
export type DockerodeRow = Readonly<{
  name: string;
  /** Asks for no version of the API: a resize of an exec is 201 at 1.24, as specified, and dockerode knows 200 alone. */
  unversioned?: true;
  work: (docker: Docker) => Promise<unknown>;
}>;

const ATTACH = { stream: true, hijack: true, stdin: true, stdout: true, stderr: true } as const;
const TALKER = 'echo out; echo err >&2; while read line; do echo "got $line"; done; exit 3';

export const ROWS: readonly DockerodeRow[] = [
  {
    name: 'create, inspect, remove',
    work: async (docker) => {
      await using container = await Held.create(docker, ['true'], {
        Env: ['A=b'],
        Labels: { kind: 'made' },
        Tty: true,
      });
      const { Config, State, Path, Args } = await container.inspect();
      return { Config: { ...Config, Hostname: '' }, State, Path, Args };
    },
  },
  {
    name: 'attach: stdin with its end, both outputs apart, the code',
    work: async (docker) => {
      await using container = await Held.create(docker, ['sh', '-c', TALKER], {
        OpenStdin: true,
        StdinOnce: true,
        AttachStdin: true,
      });
      const stream = await container.attach(ATTACH);
      const said = apart(docker, stream);
      await container.start();
      stream.end('one\ntwo\n');
      const { StatusCode } = (await container.wait()) as { StatusCode: number };
      return [await said, StatusCode];
    },
  },
  {
    name: 'attach to a terminal, resized; it is one stream of bytes',
    work: async (docker) => {
      const script = 'until stty size 2>&1 | grep "33 101"; do :; done; read line; echo "line $line"';
      await using container = await Held.create(docker, ['sh', '-c', script], { Tty: true, OpenStdin: true });
      const stream = await container.attach(ATTACH);
      const said = text(stream);
      await container.start();
      await container.resize({ h: 33, w: 101 });
      stream.write('typed\n');
      await container.wait();
      const lines = (await said).split('\r\n');
      return ['33 101', 'typed', 'line typed'].filter((line) => lines.includes(line));
    },
  },
  {
    name: 'attach, left by its detach keys, leaves it running',
    work: async (docker) => {
      await using container = await Held.started(docker, ['cat'], { Tty: true, OpenStdin: true });
      const stream = await container.attach({ ...ATTACH, detachKeys: 'ctrl-x,x' });
      const ended = text(stream);
      stream.write('\u0018x');
      await ended;
      return (await container.inspect()).State.Running;
    },
  },
  {
    name: 'run: output and code',
    work: async (docker) => {
      const output = new PassThrough();
      const said = text(output);
      const script = 'echo one; sleep 0.1; echo two; exit 4';
      const [result, container] = (await docker.run('busybox', ['sh', '-c', script], output, { Tty: true })) as [
        { StatusCode: number },
        Docker.Container,
      ];
      output.end();
      await container.remove();
      return [result.StatusCode, await said];
    },
  },
  {
    name: 'exec: outputs apart, environment, user, folder, code',
    work: async (docker) => {
      await using container = await Held.started(docker, ['sleep', '1000']);
      const exec = await container.exec({
        Cmd: ['sh', '-c', 'echo $A; id -un; pwd; echo err >&2; exit 5'],
        AttachStdout: true,
        AttachStderr: true,
        Env: ['A=given'],
        User: 'daemon',
        WorkingDir: '/tmp',
      });
      const said = await apart(docker, await exec.start({}));
      const { ExitCode, Running, ProcessConfig, OpenStdin, OpenStdout } = await exec.inspect();
      return { said, ExitCode, Running, ProcessConfig, OpenStdin, OpenStdout };
    },
  },
  {
    name: 'exec with stdin, hijacked',
    work: async (docker) => {
      await using container = await Held.started(docker, ['sleep', '1000']);
      const exec = await container.exec({ Cmd: ['sort'], AttachStdin: true, AttachStdout: true });
      const stream = await exec.start({ hijack: true, stdin: true });
      const said = apart(docker, stream);
      stream.end('b\na\n');
      return [await said, (await exec.inspect()).ExitCode];
    },
  },
  {
    name: 'exec on a terminal, resized',
    unversioned: true,
    work: async (docker) => {
      await using container = await Held.started(docker, ['sleep', '1000']);
      const script = 'echo ready; until stty size | grep "41 99"; do :; done';
      const exec = await container.exec({ Cmd: ['sh', '-c', script], AttachStdout: true, Tty: true });
      const stream = await exec.start({ Tty: true });
      const said = text(stream);
      stream.once('data', () => void exec.resize({ h: 41, w: 99 }));
      return (await said).includes('41 99\r\n');
    },
  },
  {
    name: 'exec of a missing program, and in a stopped container',
    work: async (docker) => {
      await using container = await Held.started(docker, ['sleep', '1000']);
      const exec = await container.exec({ Cmd: ['nowhere'], AttachStdout: true, AttachStderr: true });
      await apart(docker, await exec.start({}));
      const { ExitCode } = await exec.inspect();
      await container.kill();
      await container.wait();
      // 126 in dockerd 20.10, 127 in newer ones.
      return [[126, 127].includes(ExitCode ?? 0), await refusal(container.exec({ Cmd: ['true'] }))];
    },
  },
  {
    name: 'logs: whole, a tail, one stream, times, since',
    work: async (docker) => {
      await using container = await Held.ended(docker, ['sh', '-c', 'echo 1; echo 2 >&2; echo 3']);
      const both = { stdout: true, stderr: true } as const;
      // The two outputs have no order among each other, so the tail is of one that has one.
      await using ordered = await Held.ended(docker, ['seq', '3']);
      const read = async (options: object, of = container): Promise<unknown> =>
        await apart(docker, streamOf(await of.logs({ ...both, ...options, follow: false })));
      const times = await read({ timestamps: true });
      return [
        await read({}),
        await read({ tail: 1 }, ordered),
        await read({ stderr: false }),
        JSON.stringify(times).replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, '<time>'),
        await read({ since: 4_000_000_000 }),
      ];
    },
  },
  {
    name: 'logs, followed from before the start to the end',
    work: async (docker) => {
      await using container = await Held.create(docker, ['sh', '-c', 'for n in 1 2 3; do echo $n; sleep 0.1; done']);
      const stream = await container.logs({ follow: true, stdout: true, stderr: true });
      const said = apart(docker, stream);
      await container.start();
      return await said;
    },
  },
  {
    name: 'stats: one sample and a stream, their fields',
    work: async (docker) => {
      await using container = await Held.started(docker, ['sleep', '1000']);
      const one = await container.stats({ stream: false });
      const stream = (await container.stats({ stream: true })) as unknown as Readable;
      const samples: unknown[] = [];
      for await (const chunk of stream) {
        samples.push(JSON.parse(String(chunk)));
        if (samples.length === 2) break;
      }
      return [one, ...samples].map((sample) => fieldsOf(sample as object));
    },
  },
  {
    name: 'archive: in, look, out; running and stopped',
    work: async (docker) => {
      await using container = await Held.started(docker, ['sleep', '1000']);
      const archive = new TarWriter()
        .add({ name: 'folder/', type: 'directory', mode: 0o750 })
        .add({ name: 'folder/file', content: 'what is in it', mode: 0o604 })
        .add({ name: 'folder/link', type: 'symlink', linkName: 'file' })
        .end();
      await container.putArchive(archive, { path: '/tmp' });
      const running = listed(await buffer(await container.getArchive({ path: '/tmp/folder' })));
      await container.kill();
      await container.wait();
      await container.putArchive(archive, { path: '/home', noOverwriteDirNonDir: 'true' });
      const info = (await container.infoArchive({ path: '/home/folder/file' })) as { headers: Record<string, string> };
      const stat = JSON.parse(
        Buffer.from(info.headers['x-docker-container-path-stat']!, 'base64').toString(),
      ) as Record<string, unknown>;
      return [
        running,
        listed(await buffer(await container.getArchive({ path: '/home/folder' }))),
        { ...stat, mtime: '' },
        await refusal(container.getArchive({ path: '/nowhere' })),
      ];
    },
  },
  {
    name: 'pause, unpause, rename, update, restart, top, changes, stop, kill',
    work: async (docker) => {
      await using container = await Held.started(docker, ['sleep', '1000']);
      await container.putArchive(new TarWriter().add({ name: 'made', content: 'x' }).end(), { path: '/' });
      await container.pause();
      const { State } = await container.inspect();
      await container.unpause();
      await container.rename({ name: 'renamed-by-dockerode' });
      await container.update({ Memory: 64 << 20, MemorySwap: -1 });
      await container.restart({ t: 0 });
      const { Name, HostConfig } = await container.inspect();
      const { Titles, Processes } = await topOfProgram(container);
      const changes = (await container.changes()) as { Path: string }[];
      await container.stop({ t: 0 });
      return [
        State.Status,
        Name,
        HostConfig.Memory,
        Titles,
        Processes.map(([, command]) => command),
        changes.filter(({ Path }) => Path === '/made'),
        ((await refusal(container.kill())) as { message: string }).message,
        await refusal(container.stop()),
        (await container.inspect()).State.ExitCode,
      ];
    },
  },
  {
    name: 'lists and filters',
    work: async (docker) => {
      await using one = await Held.create(docker, ['true'], { name: 'listed-one', Labels: { list: 'rode', n: '1' } });
      await using two = await Held.started(docker, ['sleep', '1000'], { name: 'listed-two', Labels: { list: 'rode' } });
      void one;
      void two;
      const names = async (filters: Record<string, string[]>): Promise<string[]> =>
        (await docker.listContainers({ all: true, filters })).flatMap(({ Names }) => Names).toSorted();
      return [
        await names({ label: ['list=rode'] }),
        await names({ label: ['list=rode', 'n'] }),
        await names({ label: ['list=rode'], status: ['running'] }),
        await names({ name: ['listed-o'] }),
        await refusal(docker.listContainers({ filters: { nonsense: ['x'] } })),
      ];
    },
  },
  {
    name: 'refusals have their status and reason',
    work: async (docker) => {
      await using container = await Held.create(docker, ['true'], { name: 'taken' });
      void container;
      return [
        await refusal(docker.getContainer('nowhere').inspect()),
        await refusal(docker.getContainer('nowhere').start()),
        await refusal(docker.createContainer({ Image: 'nowhere' })),
        await refusal(docker.createContainer({ Image: 'busybox', name: 'taken', Cmd: ['true'] })),
        await refusal(docker.getExec('nowhere').inspect()),
      ];
    },
  },
  {
    name: 'commit, its image, export',
    work: async (docker) => {
      await using container = await Held.ended(docker, ['sh', '-c', 'echo x >/made']);
      await container.commit({ repo: 'by-dockerode', tag: '1', comment: 'said' });
      const { Config, Comment, RepoTags } = await docker.getImage('by-dockerode:1').inspect();
      await docker.getImage('by-dockerode:1').remove();
      const exported = tarList(await buffer(await container.export()));
      return [Config?.Cmd, Comment, RepoTags, exported.has('made')];
    },
  },
  {
    name: 'events of one container, and an end by the client',
    work: async (docker) => {
      await using container = await Held.create(docker, ['true']);
      const left = new AbortController();
      const filters = { container: [container.id] };
      const events = (await docker.getEvents({ filters, abortSignal: left.signal })) as Readable;
      await container.start();
      const actions: string[] = [];
      for await (const chunk of events) {
        const lines = String(chunk).trim().split('\n');
        actions.push(...lines.map((line) => (JSON.parse(line) as { Action: string }).Action));
        if (actions.includes('die')) break;
      }
      left.abort();
      return actions;
    },
  },
];

type Container = Docker.Container & AsyncDisposable;

/** Containers that go when a row ends, also when it fails. */
const Held = {
  async create(docker: Docker, command: string[], more: Docker.ContainerCreateOptions = {}): Promise<Container> {
    const container = await docker.createContainer({ Image: 'busybox', Cmd: command, HostConfig: {}, ...more });
    return Object.assign(container, {
      [Symbol.asyncDispose]: async () => {
        await container.remove({ force: true, v: true });
      },
    });
  },
  async started(docker: Docker, command: string[], more: Docker.ContainerCreateOptions = {}): Promise<Container> {
    const container = await Held.create(docker, command, more);
    await container.start();
    return container;
  },
  async ended(docker: Docker, command: string[]): Promise<Container> {
    const container = await Held.started(docker, command);
    await container.wait();
    return container;
  },
};

/** The two outputs of a framed stream, taken apart by dockerode itself. */
async function apart(docker: Docker, stream: NodeJS.ReadableStream): Promise<{ stdout: string; stderr: string }> {
  const [out, err] = [new PassThrough(), new PassThrough()];
  (docker.modem as { demuxStream: (...streams: unknown[]) => void }).demuxStream(stream, out, err);
  stream.on('end', () => {
    out.end();
    err.end();
  });
  const [stdout, stderr] = await Promise.all([text(out), text(err)]);
  return { stdout, stderr };
}

/** The fields of a sample; dockerd has had os_type since 1.52, and we at every version. */
function fieldsOf(sample: object): string[] {
  return Object.keys(sample)
    .filter((name) => name !== 'os_type')
    .toSorted();
}

function listed(archive: Buffer): unknown[] {
  return [...tarList(archive).values()].map(({ path, type, mode, content }) => ({
    path,
    type,
    mode,
    text: content.toString(),
  }));
}

function streamOf(content: Buffer): NodeJS.ReadableStream {
  const stream = new PassThrough();
  stream.end(content);
  return stream;
}

async function refusal(work: Promise<unknown>): Promise<unknown> {
  try {
    await work;
    return 'not refused';
  } catch (error) {
    const { statusCode, json } = error as { statusCode: number; json: { message?: string } | null };
    return { statusCode, message: json?.message };
  }
}

type Top = { Titles: string[]; Processes: string[][] };

/** dockerd answers a start before the runtime has become the container's program. */
async function topOfProgram(container: { top(options: object): Promise<unknown> }): Promise<Top> {
  const until = performance.now() + 60_000;
  for (;;) {
    const top = (await container.top({ ps_args: '-o pid,args' })) as Top;
    const isProgram = top.Processes.every(([, command]) => !/^(runc|crun)\b/.test(command ?? ''));
    if (isProgram || performance.now() > until) return top;
  }
}
