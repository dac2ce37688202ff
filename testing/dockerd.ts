import { execFile, type ChildProcess } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';

import { Api } from './api.ts';
import { endProcess, startDaemonProcess } from './daemon-process.ts';

const execute = promisify(execFile);

/**
 * A folder with the programs of another dockerd (`dockerd`, `containerd`, `docker-init`, `docker-proxy`), which is then the
 * judge of all comparisons: for runs by hand. Undefined: the machine's own, version 20.10.
 */
export const NEWER_JUDGE = process.env['GANTRY_JUDGE'];

/** dockerd leaves its host namespace mounted, and in a chroot its data folder. */
export async function unmountBelow(directory: string): Promise<void> {
  const mounts = readFileSync('/proc/self/mountinfo', 'utf8').split('\n');
  const paths = mounts.map((line) => line.split(' ')[4] ?? '').filter((path) => path.startsWith(`${directory}/`));
  for (const path of paths.toReversed()) await execute('umount', [path]);
}

/** dockerd 20.10 with roots, socket and network namespace of its own: the reference for clients. */
export class Dockerd implements AsyncDisposable {
  readonly directory: string;
  readonly socketPath: string;
  readonly api: Api;
  readonly #flags: readonly string[];
  readonly #netns: string | undefined;
  readonly #within: readonly string[];
  #process: ChildProcess;

  private constructor(
    directory: string,
    { flags, netns, within }: { flags: readonly string[]; netns: string | undefined; within: readonly string[] },
    process: ChildProcess,
  ) {
    this.directory = directory;
    this.#flags = flags;
    this.#netns = netns;
    this.#within = within;
    this.socketPath = join(directory, 'docker.sock');
    this.api = new Api(this.socketPath);
    this.#process = process;
  }

  /**
   * `netns`: a network namespace to share with others, instead of one of its own. `within`: a command that runs it, such
   * as `nsenter`, put before its words.
   */
  static async start(flags: readonly string[] = [], netns?: string, within: readonly string[] = []): Promise<Dockerd> {
    const directory = await mkdtemp(join(tmpdir(), 'dockerd-'));
    // With a map of users, the containers' root has to pass through the folder.
    if (flags.some((flag) => flag.startsWith('--userns-remap'))) await chmod(directory, 0o711);
    const dockerd = new Dockerd(directory, { flags, netns, within }, await launch(directory, flags, netns, within));
    await dockerd.api.get('/_ping');
    return dockerd;
  }

  get pid(): number {
    return this.#process.pid!;
  }

  /** Stops it cleanly and starts it again; returns as soon as it accepts clients. */
  async restart(): Promise<void> {
    await this.end();
    await this.begin();
  }

  /** Stops it cleanly. */
  async end(): Promise<void> {
    await endProcess(this.#process);
    await rm(this.socketPath, { force: true });
  }

  /** Starts it again after its end. */
  async begin(): Promise<void> {
    this.#process = await launch(this.directory, this.#flags, this.#netns, this.#within);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const { body } = await this.api.get<{ Id: string }[]>('/containers/json?all=1');
    for (const { Id } of body) await this.api.delete(`/containers/${Id}?force=1&v=1`);
    this.api[Symbol.dispose]();
    await endProcess(this.#process);
    await unmountBelow(this.directory);
    await rm(this.directory, { recursive: true, force: true });
  }
}

async function launch(
  directory: string,
  flags: readonly string[],
  netns: string | undefined,
  within: readonly string[],
): Promise<ChildProcess> {
  const socketPath = join(directory, 'docker.sock');
  const command = [
    ...within,
    ...program(),
    `--host=unix://${socketPath}`,
    `--data-root=${directory}/data`,
    `--exec-root=${directory}/exec`,
    `--pidfile=${directory}/pid`,
    ...(within.length === 0 && NEWER_JUDGE === undefined ? sharedContainerd(directory) : []), // which knows no mounts of another namespace
    ...flags,
  ];
  return await startDaemonProcess(command, socketPath, join(directory, 'log'), netns);
}

function program(): string[] {
  if (NEWER_JUDGE === undefined) return ['/usr/sbin/dockerd'];
  const programs = [
    `--init-path=${join(NEWER_JUDGE, 'docker-init')}`,
    `--userland-proxy-path=${join(NEWER_JUDGE, 'docker-proxy')}`,
  ];
  return ['env', `PATH=${NEWER_JUDGE}:${process.env.PATH}`, join(NEWER_JUDGE, 'dockerd'), ...programs];
}

/** Its own containerd has to listen within 15 seconds, which an emulated machine does not always manage. */
function sharedContainerd(directory: string): string[] {
  const socket = process.env.GANTRY_CONTAINERD;
  return socket === undefined ? [] : [`--containerd=${socket}`, `--containerd-namespace=${basename(directory)}`];
}
