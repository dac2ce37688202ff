import { execFile, execFileSync, type ChildProcess } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { chmod, mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';

import { unframe } from '@gantry/client/frames.ts';

import { Api } from './api.ts';
import { busyboxArchive } from './busybox-image.ts';
import { endProcess, startDaemonProcess } from './daemon-process.ts';
import { LocalUser } from './users/local-user.ts';
import { asRootless, prepareForUser, seenByUser } from './users/rootless.ts';

const root = dirname(import.meta.dirname);
const execute = promisify(execFile);
/** `./gantry daemon` starts Node so. */
const LIKE_THE_LAUNCHER = [
  'env',
  'MALLOC_ARENA_MAX=1',
  'MALLOC_TRIM_THRESHOLD_=131072',
  'MALLOC_MMAP_THRESHOLD_=131072',
  process.execPath,
  '--max-semi-space-size=2',
  '--initial-old-space-size=32',
  '--always-sparkplug',
];
/** The bundle under `./gantry test`; a test file that is run by itself starts the sources. */
const DAEMON = process.env['GANTRY_DAEMON'] ?? join(root, 'engine/main.ts');
/** The setting `--userns-remap` of engines that have none of their own: the same tests with a map. */
const REMAP = process.env['GANTRY_TEST_USERNS_REMAP'];
/** The time of a shim to end after it said that its container is gone. */
const ENDING_MS = 5000;

type Options = {
  flags?: readonly string[];
  image?: boolean;
  /** A command that runs the daemon, such as `chroot`: put before the daemon's words. */
  within?: readonly string[];
  /** A shared network namespace, which stays when the engine ends. Default: one of its own. */
  netns?: string;
  /** The prefix of its folder's name. */
  prefix?: string;
  /** The folder of the engine's sources: those of an older version. */
  sources?: string;
  /** The newest version of the API that it serves, which its requests name. Default: requests name 1.24. */
  version?: `1.${number}`;
  /** Started by an ordinary user, who is made for it. Default: with `GANTRY_TEST_ROOTLESS=1`. */
  rootless?: boolean;
};

/**
 * The real daemon with roots, socket and network namespace of its own, and the image `busybox` loaded.
 *
 * Disposing removes its containers, ends it, and fails when a mount, process or cgroup of it is left.
 */
export class TestEngine extends Api implements AsyncDisposable {
  readonly directory: string;
  /** Where the next daemon's sources are. */
  sources: string;
  readonly #flags: readonly string[];
  readonly #netns: string;
  readonly #within: readonly string[];
  /** The ordinary user who has started it. */
  readonly user: LocalUser | undefined;
  #process: ChildProcess;

  private constructor(
    directory: string,
    {
      flags,
      netns,
      within,
      sources,
      version,
      user,
    }: Required<Pick<Options, 'flags' | 'netns' | 'within' | 'sources' | 'version'>> & { user: LocalUser | undefined },
    process: ChildProcess,
  ) {
    super(join(directory, 'gantry.sock'), `/v${version}`);
    this.directory = directory;
    this.sources = sources;
    this.#flags = flags;
    this.#netns = netns;
    this.#within = within;
    this.user = user;
    this.#process = process;
  }

  static async start({
    flags: wanted = [],
    version: newest,
    image = true,
    netns,
    within: wantedWithin = [],
    prefix = 'gantry-test-',
    sources = root,
    rootless = process.env['GANTRY_TEST_ROOTLESS'] === '1',
  }: Options = {}): Promise<TestEngine> {
    // A user has to reach it.
    const directory = await mkdtemp(join(rootless ? '/tmp' : tmpdir(), prefix));
    if (isMapped(wanted)) await openWay(directory);
    const user = rootless ? await LocalUser.make() : undefined;
    if (user !== undefined) await prepareForUser(user, directory);
    const within = user === undefined ? wantedWithin : [...wantedWithin, ...asRootless(user, directory)];
    const namesMax = wanted.some((flag) => flag.startsWith('--max-api-version='));
    const flags = newest === undefined || namesMax ? wanted : [`--max-api-version=${newest}`, ...wanted];
    const version = newest ?? '1.24';
    if (netns === undefined) await makeNetns(ownNetns(directory));
    const place = netns ?? ownNetns(directory);
    const daemon = launch(directory, { flags, netns: place, within, sources });
    daemon.catch(() => netns ?? execFileSync('umount', [place]));
    const engine = new TestEngine(directory, { flags, netns: place, within, sources, version, user }, await daemon);
    if (image) await engine.loadBusybox().catch((error: unknown) => engine.#tell(error));
    return engine;
  }

  get pid(): number {
    return this.#process.pid!;
  }

  /** The daemon has ended, or was killed. */
  get hasEnded(): boolean {
    return this.#process.exitCode !== null || this.#process.signalCode !== null;
  }

  /** The path of its network namespace, which the engine takes for the host's. */
  get netns(): string {
    return this.#netns;
  }

  get dataRoot(): string {
    return join(this.directory, 'data');
  }

  get log(): string {
    return readFileSync(join(this.directory, 'log'), 'utf8');
  }

  async loadBusybox(): Promise<void> {
    const archive = await busyboxArchive();
    const answer = await this.post('/images/load?quiet=1', archive);
    if (answer.status !== 200) throw new Error(`load answered ${answer.status}: ${answer.raw.toString()}`);
  }

  /** Creates a container and starts it; the body is the specification's, over an image of `busybox`. */
  async run(command: readonly string[], body: Record<string, unknown> = {}, name?: string): Promise<string> {
    const id = await this.create(command, body, name);
    const answer = await this.post(`/containers/${id}/start`);
    if (answer.status !== 204) throw new Error(`start answered ${answer.status}: ${answer.raw.toString()}`);
    return id;
  }

  async create(command: readonly string[], body: Record<string, unknown> = {}, name?: string): Promise<string> {
    const query = name === undefined ? '' : `?name=${name}`;
    const answer = await this.post<{ Id: string }>(`/containers/create${query}`, {
      Image: 'busybox',
      Cmd: command,
      ...body,
    });
    if (answer.status !== 201) throw new Error(`create answered ${answer.status}: ${answer.raw.toString()}`);
    return answer.body.Id;
  }

  /** Waits for the container's exit and returns its code. */
  async wait(id: string): Promise<number> {
    const answer = await this.post<{ StatusCode: number }>(`/containers/${id}/wait`);
    return answer.body.StatusCode;
  }

  async output(id: string): Promise<{ stdout: string; stderr: string }> {
    const answer = await this.get(`/containers/${id}/logs?stdout=1&stderr=1`);
    return unframe(answer.raw);
  }

  /** Runs a command in the daemon's network namespace, which the engine takes for the host's. */
  async onHost(command: readonly string[], options: { timeout?: number } = {}): Promise<string> {
    const { stdout } = await execute('nsenter', [`--net=${this.#netns}`, ...command], options);
    return stdout;
  }

  /** GET / of a port on the loopback of the daemon's network namespace. */
  async fetchText(port: number): Promise<string> {
    const script = `fetch('http://127.0.0.1:${port}/').then(async (r) => process.stdout.write(await r.text()))`;
    return await this.onHost([process.execPath, '-e', script]);
  }

  /** The docker command line against this engine. */
  async docker(...command: string[]): Promise<{ stdout: string; stderr: string; code: number }> {
    try {
      const { stdout, stderr } = await execute('docker', ['-H', `unix://${this.socketPath}`, ...command], {
        env: { ...process.env, DOCKER_CONFIG: join(this.directory, 'docker-config') },
      });
      return { stdout, stderr, code: 0 };
    } catch (error) {
      const failure = error as { stdout: string; stderr: string; code: number };
      if (typeof failure.code !== 'number') throw error;
      return { stdout: failure.stdout, stderr: failure.stderr, code: failure.code };
    }
  }

  /** Ends the daemon as a crash would; its network namespace stays for the next one. */
  async kill(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    await endProcess(this.#process, signal);
  }

  /** Restarts the daemon after `kill`; `flags` apply to this daemon only. */
  async startAgain(flags: readonly string[] = this.#flags): Promise<void> {
    const { sources } = this;
    this.#process = await launch(this.directory, { flags, netns: this.#netns, within: this.#within, sources });
  }

  /** Why a set-up failed: of a daemon that has ended meanwhile also how, and its last words. */
  async #tell(cause: unknown): Promise<never> {
    await sleep(500); // its exit may follow the failure
    const { exitCode, signalCode } = this.#process;
    const end = this.hasEnded ? `, and the daemon has ended (${exitCode ?? signalCode})` : '';
    throw new Error(`the set-up failed: ${String(cause)}${end}:\n${this.log.slice(-8000)}`, { cause });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const { body } = await this.get<{ Id: string }[]>('/containers/json?all=1');
    for (const { Id } of body) await this.delete(`/containers/${Id}?force=1&v=1`);
    this[Symbol.dispose]();
    await endProcess(this.#process);
    if (this.#netns === ownNetns(this.directory)) await execute('umount', [this.#netns]);
    await this.user?.[Symbol.asyncDispose]();
    const left = await findStaying(this.directory);
    await rm(this.directory, { recursive: true, force: true });
    if (left.length > 0) throw new Error(`the engine left behind:\n${left.join('\n')}`);
  }
}

/** The containers' root has to pass through the folder and those above it, of which a test run makes some. */
async function openWay(directory: string): Promise<void> {
  for (let folder = directory; folder !== '/'; folder = dirname(folder)) {
    const { mode } = await stat(folder);
    if ((mode & 0o001) === 0) await chmod(folder, (mode & 0o7777) | 0o011);
  }
}

function isMapped(flags: readonly string[]): boolean {
  return REMAP !== undefined || flags.some((flag) => flag.startsWith('--userns-remap'));
}

function ownNetns(directory: string): string {
  return join(directory, 'netns');
}

/** A named network namespace, because the daemon's own changes for moments while it sets up containers. */
async function makeNetns(path: string): Promise<void> {
  await writeFile(path, '');
  await execute('unshare', [`--net=${path}`, 'true']);
}

async function launch(
  directory: string,
  { flags, netns, within, sources }: Required<Pick<Options, 'flags' | 'netns' | 'within' | 'sources'>>,
): Promise<ChildProcess> {
  const socketPath = join(directory, 'gantry.sock');
  await rm(socketPath, { force: true });
  const command = [
    ...within,
    ...[...LIKE_THE_LAUNCHER, sources === root ? DAEMON : join(sources, 'engine/main.ts')].map((word) =>
      within.some((each) => each.endsWith('/gantry-rootless')) ? seenByUser(word) : word,
    ),
    `--host=unix://${socketPath}`,
    `--data-root=${directory}/data`,
    `--exec-root=${directory}/exec`,
    `--pidfile=${directory}/pid`,
    ...(REMAP === undefined || flags.some((flag) => flag.startsWith('--userns-remap'))
      ? []
      : [`--userns-remap=${REMAP}`]),
    ...flags,
  ];
  return await startDaemonProcess(command, socketPath, join(directory, 'log'), netns);
}

/** Lists mounts and processes of the engine that do not disappear. */
async function findStaying(directory: string): Promise<string[]> {
  const until = performance.now() + ENDING_MS;
  for (;;) {
    const left = leftovers(directory);
    if (left.length === 0 || performance.now() > until) return left;
    await sleep(20);
  }
}

/** Mounts below the engine's folder and processes that name it. */
function leftovers(directory: string): string[] {
  const mounts = readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .filter((line) => line.includes(directory))
    .map((line) => `mount ${line.split(' ')[4]}`);
  const processes = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      const command = commandOf(pid);
      return command.includes(directory) ? [`process ${pid} ${command}`] : [];
    });
  return [...mounts, ...processes];
}

function commandOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
  } catch {
    return ''; // it ended after it was listed
  }
}
