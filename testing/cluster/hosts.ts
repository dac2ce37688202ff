import { execFile } from 'node:child_process';
import { globSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

import { Api } from '../api.ts';
import { eventually } from '../eventually.ts';
import { TestEngine } from '../test-engine.ts';
import { killMachine } from './machine.ts';

const execute = promisify(execFile);

/** Fields of a node that tests read. */
export type NodeWire = {
  ID: string;
  Version: { Index: number };
  Spec: { Name?: string; Role: string; Availability: string; Labels: Record<string, string> };
  Description: { Hostname?: string };
  Status: { State: string; Addr: string };
  ManagerStatus?: { Leader?: boolean; Reachability: string; Addr: string };
};
/** Fields of a member of etcd that tests read; it has no name until it has run. */
export type EtcdMember = { ID: string; name?: string; isLearner?: boolean };
export type SwarmWire = {
  ID: string;
  Version: { Index: number };
  Spec: object;
  JoinTokens: { Worker: string; Manager: string };
};

/** One machine: a network namespace on the switch, with a host name and a daemon of its own. */
export class ClusterHost implements AsyncDisposable {
  readonly engine: TestEngine;
  readonly ip: string;
  readonly name: string;
  #isOff = false;

  constructor(engine: TestEngine, ip: string, name: string) {
    this.engine = engine;
    this.ip = ip;
    this.name = name;
  }

  async init(body: object = {}): Promise<string> {
    const answer = await this.engine.post<string>('/swarm/init', { ListenAddr: `${this.ip}:2377`, ...body });
    if (answer.status !== 200) throw new Error(`init answered ${answer.status}: ${answer.raw.toString()}`);
    return answer.body;
  }

  /** Joins by the token of a manager for that role. */
  async join(manager: ClusterHost, role: 'Worker' | 'Manager', token?: string, body: object = {}): Promise<void> {
    const JoinToken = token ?? (await manager.swarm()).JoinTokens[role];
    const RemoteAddrs = [`${manager.ip}:2377`];
    const ListenAddr = `${this.ip}:2377`;
    const answer = await this.engine.post('/swarm/join', { ListenAddr, RemoteAddrs, JoinToken, ...body });
    if (answer.status !== 200) throw new Error(`join answered ${answer.status}: ${answer.raw.toString()}`);
  }

  async swarm(): Promise<SwarmWire> {
    const answer = await this.engine.get<SwarmWire>('/swarm');
    if (answer.status !== 200) throw new Error(`GET /swarm answered ${answer.status}: ${answer.raw.toString()}`);
    return answer.body;
  }

  async nodes(): Promise<NodeWire[]> {
    const answer = await this.engine.get<NodeWire[]>('/nodes');
    if (answer.status !== 200) throw new Error(`GET /nodes answered ${answer.status}: ${answer.raw.toString()}`);
    return answer.body;
  }

  /** A node with a host name, once one is as expected: who has left and joined again has two. */
  async node(name: string, isExpected: (node: NodeWire) => boolean = () => true): Promise<NodeWire> {
    return await eventually(`node ${name} as ${this.name} sees it`, async () => {
      return (await this.nodes()).find((node) => node.Description.Hostname === name && isExpected(node));
    });
  }

  /** Changes a node's specification, again where another change came first. */
  async updateNode(name: string, changes: Partial<NodeWire['Spec']>): Promise<void> {
    await eventually(`the update of ${name}`, async () => {
      const { ID, Version, Spec } = await this.node(name);
      const answer = await this.engine.post(`/nodes/${ID}/update?version=${Version.Index}`, { ...Spec, ...changes });
      if (answer.status !== 200) throw new Error(`it answered ${answer.status}: ${answer.raw.toString()}`);
      return true;
    });
  }

  async info(): Promise<{ NodeID: string; LocalNodeState: string; ControlAvailable: boolean; Error: string }> {
    const { body } = await this.engine.get<{ Swarm: Awaited<ReturnType<ClusterHost['info']>> }>('/info');
    return body.Swarm;
  }

  /** The process id of its etcd, from the file that the daemon keeps. */
  async etcdPid(): Promise<number> {
    return Number(await this.engine.onHost(['cat', join(this.engine.directory, 'exec/etcd/pid')]));
  }

  /** The members of etcd as this machine's knows them, maybe after a change of them, such as `remove`. */
  async etcdMembers(what: 'list' | 'promote' | 'remove' = 'list', request: object = {}): Promise<EtcdMember[]> {
    using etcd = new Api(join(this.engine.directory, 'exec/etcd/client:0'), '');
    const { status, body, raw } = await etcd.post<{ members: EtcdMember[] }>(`/v3/cluster/member/${what}`, request);
    if (status !== 200) throw new Error(`etcd answered ${status}: ${raw.toString()}`);
    return body.members;
  }

  /** Ends every process of the machine at once, also those of its containers, as a loss of power does. */
  async powerOff(): Promise<void> {
    this.#isOff = true;
    await killMachine(this.engine.pid);
    await this.engine.kill();
  }

  async powerOn(): Promise<void> {
    await this.engine.startAgain();
    this.#isOff = false;
  }

  /** Leaves the cluster where it runs tasks: else they would be started again while they are removed. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#isOff) await this.powerOn();
    else if (this.engine.hasEnded) await this.engine.startAgain(); // a test that failed has killed it
    const { body } = await this.engine.get<{ Labels: Record<string, string> }[]>('/containers/json?all=1');
    if (body.some(({ Labels }) => Labels['com.docker.swarm.task'] !== undefined)) {
      await this.engine.post('/swarm/leave?force=1');
    }
    await this.engine[Symbol.asyncDispose]();
  }
}

/** `image`: each has `busybox`. `flags` of each daemon. `clocks`: what a machine's daemon sees beside the time, such as `+50m`. */
type HostOptions = {
  image?: boolean;
  flags?: readonly string[];
  /** The version of the API that they serve and requests name. */
  version?: `1.${number}`;
  clocks?: Readonly<Record<string, string>>;
  /** Sources of another version of the engine. */
  sources?: string;
};

/** Machines on one switch, which is a network namespace with a bridge. Disposing ends and removes them all. */
export class ClusterHosts implements AsyncDisposable {
  readonly #directory: string;
  readonly hosts: ClusterHost[] = [];
  readonly #names: string[] = [];

  private constructor(directory: string) {
    this.#directory = directory;
  }

  /** `count` machines, 10.77.0.1 and so on, named `host1` and so on. */
  static async start(count: number, { image = false, ...more }: HostOptions = {}): Promise<ClusterHosts> {
    const directory = await mkdtemp(join(tmpdir(), 'gantry-hosts-'));
    const all = new ClusterHosts(directory);
    await writeFile(all.#switch, '');
    await execute('unshare', [`--net=${all.#switch}`, 'ip', 'link', 'add', 'switch', 'type', 'bridge']);
    await using undo = new AsyncDisposableStack();
    undo.use(all);
    await all.#inSwitch('ip', 'link', 'set', 'switch', 'up');
    const added = await Promise.allSettled(
      Array.from({ length: count }, async (_, index) => await all.#add(index + 1, { image, ...more })),
    );
    for (const one of added) if (one.status === 'rejected') throw one.reason;
    all.hosts.sort((a, b) => a.name.localeCompare(b.name));
    undo.move();
    return all;
  }

  /** Machines of one cluster: the managers first, each of which has a vote and knows all nodes when this returns. */
  static async cluster(managers: number, workers: number, options: HostOptions = {}): Promise<ClusterHosts> {
    await using undo = new AsyncDisposableStack();
    const all = undo.use(await ClusterHosts.start(managers + workers, options));
    const [first, ...others] = all.hosts;
    await first!.init();
    const joins = others.map(
      async (host, index) => await host.join(first!, index + 1 < managers ? 'Manager' : 'Worker'),
    );
    await Promise.all(joins);
    for (const host of all.hosts.slice(0, managers)) {
      await eventually(`${host.name} knows all nodes, and the managers vote`, async () => {
        const nodes = await host.nodes();
        const voting = nodes.filter(({ ManagerStatus }) => ManagerStatus?.Reachability === 'reachable');
        return (nodes.length === all.hosts.length && voting.length === managers) || undefined;
      });
    }
    undo.move();
    return all;
  }

  /** The machine whose daemon leads, as the first of these that knows says. */
  async leader(asked: readonly ClusterHost[] = this.hosts): Promise<ClusterHost> {
    return await eventually('a leader', async () => {
      const looks = asked.map(async (host) => {
        const leader = (await host.nodes()).find(({ ManagerStatus }) => ManagerStatus?.Leader === true);
        if (leader === undefined) throw new Error(`${host.name} knows no leader`);
        return leader;
      });
      const { Description } = await Promise.any(looks);
      return this.hosts.find(({ name }) => name === Description.Hostname);
    });
  }

  /** Takes a machine off the switch, or puts it on it again. */
  async plug(host: ClusterHost, isIn: boolean): Promise<void> {
    await this.#inSwitch('ip', 'link', 'set', `to-${host.name}`, isIn ? 'up' : 'down');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const ended = await Promise.allSettled(this.hosts.map(async (host) => await host[Symbol.asyncDispose]()));
    for (const name of this.#names) await execute('umount', [this.#netns(name)]);
    await execute('umount', [this.#switch]);
    await rm(this.#directory, { recursive: true, force: true });
    const failures = ended.filter((end) => end.status === 'rejected').map(({ reason }) => reason as Error);
    if (failures.length > 0) throw new AggregateError(failures, failures.map(({ message }) => message).join('\n'));
  }

  async #add(number: number, { clocks = {}, ...options }: HostOptions): Promise<void> {
    const name = `host${number}`;
    const ip = `10.77.0.${number}`;
    const netns = this.#netns(name);
    await writeFile(netns, '');
    await execute('unshare', [`--net=${netns}`, 'true']);
    this.#names.push(name);
    const end = ['peer', 'name', 'eth0', 'netns', netns];
    await this.#inSwitch('ip', 'link', 'add', `to-${name}`, 'master', 'switch', 'type', 'veth', ...end);
    await this.#inSwitch('ip', 'link', 'set', `to-${name}`, 'up');
    for (const words of [`addr add ${ip}/24 dev eth0`, 'link set eth0 up', 'link set lo up']) {
      await execute('nsenter', [`--net=${netns}`, 'ip', ...words.split(' ')]);
    }
    const within = ['unshare', '--uts', 'sh', '-c', `hostname ${name}; ${withClock(clocks[name])} exec "$@"`, 'sh'];
    this.hosts.push(new ClusterHost(await TestEngine.start({ ...options, netns, within }), ip, name));
  }

  async #inSwitch(...command: string[]): Promise<void> {
    await execute('nsenter', [`--net=${this.#switch}`, ...command]);
  }

  get #switch(): string {
    return join(this.#directory, 'switch');
  }

  #netns(name: string): string {
    return join(this.#directory, name);
  }
}

/** Words of a shell that give another time to what it runs: time namespaces do not move the clock that people read. */
function withClock(offset: string | undefined): string {
  if (offset === undefined) return '';
  const [library] = globSync('/usr/lib/*/faketime/libfaketime.so.1');
  if (library === undefined) throw new Error('the package libfaketime is not installed');
  return `export LD_PRELOAD=${library} FAKETIME=${offset} FAKETIME_DONT_FAKE_MONOTONIC=1;`;
}
