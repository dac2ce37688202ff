import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

import type { Api } from '@gantry/testing/api.ts';
import { busyboxArchive } from '@gantry/testing/busybox-image.ts';
import { killMachine } from '@gantry/testing/cluster/machine.ts';
import { Dockerd } from '@gantry/testing/dockerd.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

import { expect, until } from './answers.ts';

const execute = promisify(execFile);

export type Kind = 'gantry' | 'dockerd';
export type NodeWire = {
  Description: { Hostname?: string };
  Status: { State: string };
  ManagerStatus?: { Leader?: boolean };
};

/** One machine: a network namespace on the switch, with a host name and a daemon of its own. */
export class Machine {
  readonly name: string;
  readonly ip: string;
  readonly daemon: TestEngine | Dockerd;

  constructor(name: string, ip: string, daemon: TestEngine | Dockerd) {
    this.name = name;
    this.ip = ip;
    this.daemon = daemon;
  }

  get api(): Api {
    return this.daemon instanceof TestEngine ? this.daemon : this.daemon.api;
  }

  /** SIGKILL for the daemon alone. */
  async kill(): Promise<void> {
    if (!(this.daemon instanceof TestEngine)) process.kill(this.daemon.pid, 'SIGKILL');
    await this.#gone();
  }

  /** The loss of its power. */
  async powerOff(): Promise<void> {
    await killMachine(this.daemon.pid);
    await this.#gone();
  }

  async #gone(): Promise<void> {
    await (this.daemon instanceof TestEngine ? this.daemon.kill() : this.daemon.end());
  }

  async begin(): Promise<void> {
    await (this.daemon instanceof TestEngine ? this.daemon.startAgain() : this.daemon.begin());
  }
}

/** Machines on one switch, of one engine: three managers, and a worker. */
export class Machines implements AsyncDisposable {
  readonly all: Machine[] = [];
  readonly #parts = new AsyncDisposableStack();

  static async start(kind: Kind): Promise<Machines> {
    const machines = new Machines();
    await using undo = new AsyncDisposableStack();
    undo.use(machines);
    await machines.#begin(kind);
    undo.move();
    return machines;
  }

  get managers(): Machine[] {
    return this.all.slice(0, 3);
  }

  get worker(): Machine {
    return this.all[3]!;
  }

  async nodes(asked = this.all[0]!): Promise<NodeWire[]> {
    return await expect<NodeWire[]>(asked.api, 'GET', '/nodes');
  }

  async leader(): Promise<Machine> {
    const node = (await this.nodes()).find(({ ManagerStatus }) => ManagerStatus?.Leader === true);
    return this.all.find(({ name }) => name === node?.Description.Hostname)!;
  }

  /** All nodes are there, and one manager leads. */
  async settled(): Promise<void> {
    await until('all nodes', async () => {
      const states = await Promise.all(this.managers.map(async (manager) => await this.nodes(manager)));
      return states.every(
        (nodes) =>
          nodes.filter(({ Status }) => Status.State === 'ready').length === this.all.length &&
          nodes.some(({ ManagerStatus }) => ManagerStatus?.Leader === true),
      );
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.allSettled(this.all.map(async ({ api }) => await api.post('/swarm/leave?force=1')));
    await this.#parts.disposeAsync();
  }

  async #begin(kind: Kind): Promise<void> {
    const directory = await mkdtemp(join(tmpdir(), 'bench-machines-'));
    this.#parts.defer(async () => await rm(directory, { recursive: true, force: true }));
    const hub = await this.#netns(join(directory, 'switch'));
    const inHub = async (...words: string[]): Promise<void> =>
      void (await execute('nsenter', [`--net=${hub}`, ...words]));
    await inHub('ip', 'link', 'add', 'switch', 'type', 'bridge');
    await inHub('ip', 'link', 'set', 'switch', 'up');
    for (let number = 1; number <= 4; number += 1) {
      const [name, ip] = [`${kind}${number}`, `10.78.0.${number}`];
      const netns = await this.#netns(join(directory, name));
      const end = ['type', 'veth', 'peer', 'name', 'eth0', 'netns', netns];
      await inHub('ip', 'link', 'add', `to-${name}`, 'master', 'switch', ...end);
      await inHub('ip', 'link', 'set', `to-${name}`, 'up');
      for (const words of [`addr add ${ip}/24 dev eth0`, 'link set eth0 up', 'link set lo up']) {
        await execute('nsenter', [`--net=${netns}`, 'ip', ...words.split(' ')]);
      }
      const within = ['unshare', '--uts', 'sh', '-c', `hostname ${name}; exec "$@"`, 'sh'];
      const daemon = kind === 'gantry' ? TestEngine.start({ netns, within }) : Dockerd.start([], netns, within);
      const machine = new Machine(name, ip, this.#parts.use(await daemon));
      if (kind === 'dockerd') await machine.api.post('/images/load?quiet=1', await busyboxArchive());
      this.all.push(machine);
    }
    await this.#join();
  }

  async #join(): Promise<void> {
    const [first, ...others] = this.all as [Machine, ...Machine[]];
    const addresses = ({ ip }: Machine): object => ({ ListenAddr: `${ip}:2377`, AdvertiseAddr: ip });
    await expect(first.api, 'POST', '/swarm/init', addresses(first));
    const { JoinTokens } = await expect<{ JoinTokens: { Worker: string; Manager: string } }>(
      first.api,
      'GET',
      '/swarm',
    );
    for (const machine of others) {
      const JoinToken = machine === this.worker ? JoinTokens.Worker : JoinTokens.Manager;
      const body = { ...addresses(machine), RemoteAddrs: [`${first.ip}:2377`], JoinToken };
      await expect(machine.api, 'POST', '/swarm/join', body);
    }
    await this.settled();
  }

  async #netns(path: string): Promise<string> {
    await writeFile(path, '');
    await execute('unshare', [`--net=${path}`, 'true']);
    this.#parts.defer(async () => void (await execute('umount', [path])));
    return path;
  }
}
