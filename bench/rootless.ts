import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';

import { busyboxArchive } from '@gantry/testing/busybox-image.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';
import { LocalUser } from '@gantry/testing/users/local-user.ts';
import { asUser, prepareForUser, seenByUser } from '@gantry/testing/users/rootless.ts';

import { Figures } from './beside-podman.ts';
import { inside, serving } from './networks/host.ts';

const execute = promisify(execFile);
const root = dirname(import.meta.dirname);
const CLIENT = process.env['GANTRY_CLIENT'] ?? join(root, 'cli/main.ts');
const RUN = 'run --rm busybox true';
const [MACHINE, OUTSIDE] = ['192.0.2.2', '192.0.2.1'];
const PORT = 5201;
const SECONDS = '3';
const RUN_BUDGET = 0.5;
const TRAFFIC_ROUNDS = 3;

/** An engine of an ordinary user: its command line and its way out, beside podman's. Returns a table. */
export async function benchRootless(rounds: number): Promise<string> {
  await using stack = new AsyncDisposableStack();
  // Podman's cleanup refuses a run root (FOLDER/podman/run/containers) of more than 50 characters, and each run waits 20 s for it.
  const folder = await mkdtemp('/tmp/gantry-bench-');
  stack.defer(async () => await rm(folder, { recursive: true, force: true }));
  await execute('mknod', ['-m', '666', join(folder, 'tun'), 'c', '10', '200']);
  const machine = stack.use(await machineIn(folder));
  const engine = stack.use(
    await TestEngine.start({ rootless: true, netns: machine.netns, within: withTunnel(folder), version: '1.41' }),
  );
  const podman = stack.use(await Podman.make(folder, machine.netns));
  const ours = async (...words: string[]): Promise<string> => {
    const client = [process.execPath, CLIENT, '--host', `unix://${engine.socketPath}`].map(seenByUser);
    const command = [`--net=${machine.netns}`, ...asUser(engine.user!, engine.directory), ...client, ...words];
    return (await execute('nsenter', command)).stdout;
  };
  const theirs = async (...words: string[]): Promise<string> => await podman.run(...words);
  const figures = new Figures();
  const sides = [
    ['gantry', ours],
    ['podman', theirs],
  ] as const;
  for (let round = -1; round < rounds; round += 1) {
    for (const [name, run] of sides)
      await figures.time(round, RUN, name, async () => void (await run(...RUN.split(' '))));
  }
  for (const [name, run] of sides) {
    const id = (await run('run', '-d', '-p', `${PORT}:${PORT}`, 'busybox', 'sleep', '100000')).trim();
    const pid = Number(await run('inspect', '-f', '{{.State.Pid}}', id));
    const measure = async (work: string, from: number, address: string, ...more: string[]): Promise<void> => {
      for (let round = 0; round < TRAFFIC_ROUNDS; round += 1) {
        const text = await inside(from, 'iperf3', '-c', address, '-p', String(PORT), '-J', '-t', SECONDS, ...more);
        const { end } = JSON.parse(text) as { end: { sum_received: { bits_per_second: number } } };
        figures.note(round, work, name, 8e12 / end.sum_received.bits_per_second);
      }
    };
    const served = ['iperf3', '-s', '--forceflush', '-p', String(PORT)];
    {
      await using _server = await serving(machine.outside, ...served);
      await measure('1 GB to another machine', pid, OUTSIDE);
      await measure('1 GB from another machine', pid, OUTSIDE, '-R');
    }
    await using _server = await serving(pid, ...served);
    await measure('1 GB into a published port', machine.outside, MACHINE);
    await run('rm', '-f', id);
  }
  return figures.table((work) => (work === RUN ? RUN_BUDGET : 1));
}

/** The words before a command that finds /dev/net/tun open to users, as udev makes it. */
function withTunnel(folder: string): string[] {
  const script = 'mount --bind "$0" /dev/net/tun && mount -t tmpfs none /sys/fs/cgroup && exec "$@"';
  return ['unshare', '--mount', '--propagation', 'private', 'sh', '-c', script, join(folder, 'tun')];
}

type Machine = AsyncDisposable & Readonly<{ netns: string; outside: number }>;

/** A network namespace whose default route leads to a second one, the process `outside`. */
async function machineIn(folder: string): Promise<Machine> {
  const netns = join(folder, 'netns');
  await writeFile(netns, '');
  await execute('unshare', [`--net=${netns}`, 'ip', 'link', 'set', 'lo', 'up']);
  const other = spawn('unshare', ['--net', 'sh', '-c', 'ip link set lo up; echo; exec sleep 100000'], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  await once(other.stdout, 'data');
  const outside = other.pid!;
  const onMachine = async (...words: string[]): Promise<unknown> =>
    await execute('nsenter', [`--net=${netns}`, 'ip', ...words]);
  const onOther = async (...words: string[]): Promise<unknown> => await inside(outside, 'ip', ...words);
  await onMachine('link', 'add', 'uplink', 'type', 'veth', 'peer', 'name', 'cable', 'netns', String(outside));
  await onMachine('addr', 'add', `${MACHINE}/24`, 'dev', 'uplink');
  await onMachine('link', 'set', 'uplink', 'up');
  await onOther('addr', 'add', `${OUTSIDE}/24`, 'dev', 'cable');
  await onOther('link', 'set', 'cable', 'up');
  await onMachine('route', 'add', 'default', 'via', OUTSIDE);
  const end = async (): Promise<void> => {
    other.kill();
    await once(other, 'exit');
    await execute('umount', [netns]);
  };
  return { netns, outside, [Symbol.asyncDispose]: end };
}

/** Podman of another ordinary user; its storage is native overlayfs, and its way out slirp4netns, all that Debian 12's knows. */
class Podman implements AsyncDisposable {
  readonly #user: LocalUser;
  readonly #words: readonly string[];
  readonly #output: string;

  private constructor(user: LocalUser, words: readonly string[], output: string) {
    this.#user = user;
    this.#words = words;
    this.#output = output;
  }

  static async make(folder: string, netns: string): Promise<Podman> {
    const user = await LocalUser.make();
    const place = join(folder, 'podman');
    await mkdir(place);
    await execute('chmod', ['755', folder]);
    await prepareForUser(user, place);
    const runtime = ['--runtime=crun', '--storage-driver=overlay', '--cgroup-manager=cgroupfs'];
    const podman = new Podman(
      user,
      [`--net=${netns}`, ...withTunnel(folder), ...asUser(user, place), 'podman', ...runtime],
      join(folder, 'output'),
    );
    const settings = join(place, 'home/.config/containers');
    await mkdir(settings, { recursive: true });
    await writeFile(join(settings, 'containers.conf'), '[containers]\ncgroups = "disabled"\n');
    await execute('chown', ['-R', `${user.uid}:${user.gid}`, join(place, 'home')]);
    await writeFile(join(place, 'busybox.tar'), await busyboxArchive(), { mode: 0o644 });
    await podman.run('load', '-q', '-i', join(place, 'busybox.tar'));
    return podman;
  }

  /** Through a file: processes of a container that goes on would keep a pipe open. */
  async run(...words: string[]): Promise<string> {
    const script = 'exec nsenter "$@" >"$0" 2>"$0.errors" </dev/null';
    await execute('sh', ['-c', script, this.#output, ...this.#words, ...words]);
    return await readFile(this.#output, 'utf8');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.run('system', 'reset', '--force');
    // Its process that holds the namespaces stays otherwise.
    await execute('pkill', ['-KILL', '-U', String(this.#user.uid)]).catch(() => undefined);
    await this.#user[Symbol.asyncDispose]();
  }
}
