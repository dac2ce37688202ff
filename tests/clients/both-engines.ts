import { execFile } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

import { Api } from '@gantry/testing/api.ts';
import { busyboxArchive, busyboxLayer, imageArchive } from '@gantry/testing/busybox-image.ts';
import { Dockerd } from '@gantry/testing/dockerd.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

const execute = promisify(execFile);

/** Any will do: only its number counts. */
const disk = `/dev/${readdirSync('/sys/block')[0]}`;

/** One of the two, with a folder on its host that rows may mount. */
export type Side = Readonly<{
  name: 'gantry' | 'dockerd';
  api: Api;
  directory: string;
  socketPath: string;
  /** The version of the API that requests name. Default: 1.24. */
  version?: string;
}>;

export type Said = Readonly<{ code: number; stdout: string; stderr: string }>;

/** Our daemon and dockerd 20.10, each with the images `busybox` and `rich`, to ask both the same. */
export class BothEngines implements AsyncDisposable {
  readonly ours: Side;
  readonly theirs: Side;
  readonly #parts: AsyncDisposableStack;

  private constructor(ours: Side, theirs: Side, parts: AsyncDisposableStack) {
    this.ours = ours;
    this.theirs = theirs;
    this.#parts = parts;
  }

  /** `version`: that of the requests. `newest`: the newest version that ours serves. `further`: flags of both daemons. */
  static async start(
    version: `1.${number}` = '1.24',
    newest = version,
    further: readonly string[] = [],
  ): Promise<BothEngines> {
    await using parts = new AsyncDisposableStack();
    const flags = ['--bip=172.17.0.1/16', `--max-api-version=${newest}`, ...further];
    const starts = [
      TestEngine.start({ version, image: false, flags }).then((part) => parts.use(part)),
      Dockerd.start(['--bip=172.17.0.1/16', ...further]).then((part) => parts.use(part)),
    ] as const;
    await Promise.allSettled(starts); // so that both are ended when one fails
    const [engine, dockerd] = await Promise.all(starts);
    const { directory, socketPath } = engine;
    const ours: Side = { name: 'gantry', api: engine, directory, socketPath, version };
    const theirs: Side = {
      name: 'dockerd',
      api: parts.use(new Api(dockerd.socketPath, `/v${version}`)),
      directory: dockerd.directory,
      socketPath: dockerd.socketPath,
      version,
    };
    await Promise.all([prepare(ours), prepare(theirs)]);
    return new BothEngines(ours, theirs, parts.move());
  }

  /** Does the same work on both, at the same time. */
  async both<T>(work: (side: Side) => Promise<T>): Promise<{ ours: T; theirs: T }> {
    const [ours, theirs] = await Promise.all([work(this.ours), work(this.theirs)]);
    return { ours, theirs };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#parts.disposeAsync();
  }
}

/** Docker's command lines: 28, and 20.10 of the judge's package. */
export const COMMAND_LINES = ['docker', '/usr/bin/docker'] as const;
export type CommandLine = (typeof COMMAND_LINES)[number];

/** The docker command line as it speaks with an engine of the side's version, with the words as `placed`. */
export async function docker(side: Side, words: readonly string[], program: CommandLine = 'docker'): Promise<Said> {
  const command = words.map((word) => placed(side, word));
  const env = {
    PATH: process.env.PATH,
    DOCKER_API_VERSION: side.version ?? '1.24',
    DOCKER_HOST: `unix://${side.socketPath}`,
    DOCKER_CONFIG: join(side.directory, 'docker-config'),
    FROM_CLIENT: 'of the client',
  };
  try {
    const running = execute(program, command, { env });
    // Most commands end without a look at it.
    running.child.stdin!.on('error', () => undefined).end('typed\n');
    const { stdout, stderr } = await running;
    return { code: 0, stdout, stderr };
  } catch (error) {
    const failure = error as { code: unknown; stdout: string; stderr: string };
    if (typeof failure.code !== 'number') throw error;
    return { code: failure.code, stdout: failure.stdout, stderr: failure.stderr };
  }
}

/** `{dir}` is the side's folder, `{disk}` a block device. */
export function placed(side: Side, text: string): string {
  return text.replaceAll('{dir}', join(side.directory, 'host')).replaceAll('{disk}', disk);
}

/** Values that always differ between runs and sides: folders, ids, addresses, random names. */
export function normalised(side: Side, text: string): string {
  return (
    text
      .replaceAll(side.directory, '<dir>')
      .replaceAll(/\b[0-9a-f]{64}\b/g, '<id>')
      .replaceAll(/\b(?=[0-9a-f]*\d)[0-9a-f]{12}\b/g, '<short id>')
      // Messages of the client, when one of its own requests overtakes another.
      .replaceAll(/^time=.*error (getting events from daemon|removing container).*\n/gm, '')
      .replaceAll(/(?<=OCI runtime create failed: )(crun|runc)(?= create failed)/g, 'runtime')
      // Paths that dockerd hides from 26 and 28 on.
      .replaceAll(/"\/proc\/interrupts",|,"\/sys\/devices\/virtual\/powercap"/g, '')
      .replaceAll(/\b172\.17\.0\.(?!1\b)\d+\b/g, '<address>')
  );
}

async function prepare({ api, directory }: Side): Promise<void> {
  const host = join(directory, 'host');
  await mkdir(join(host, 'folder', 'sub'), { recursive: true });
  await writeFile(join(host, 'folder', 'greeting'), 'hello\n');
  await writeFile(join(host, 'file'), 'of the host\n');
  await writeFile(join(host, 'env'), '# a comment\nA=from file\nFROM_CLIENT\nNOT_SET\n\nB=two\n');
  await writeFile(join(host, 'labels'), 'a=1\nb\n');
  await writeFile(
    join(host, 'seccomp.json'),
    '{"defaultAction":"SCMP_ACT_ALLOW","syscalls":[{"names":["mkdir","mkdirat"],"action":"SCMP_ACT_ERRNO"}]}',
  );
  for (const archive of [await busyboxArchive(), richImage()]) await api.post('/images/load?quiet=1', archive);
}

/** An image with all settings that an image can have. */
function richImage(): Buffer {
  return imageArchive(busyboxLayer(), ['rich:latest'], {
    Env: ['PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', 'B=of the image', 'C=three'],
    Entrypoint: ['/bin/echo', 'entry'],
    Cmd: ['command'],
    User: 'daemon',
    WorkingDir: '/var/spool',
    Volumes: { '/etc': {}, '/made': {} },
    ExposedPorts: { '80/tcp': {}, '53/udp': {} },
    Labels: { a: 'of the image', c: 'three' },
    StopSignal: 'SIGINT',
    OnBuild: ['RUN true'],
  });
}
