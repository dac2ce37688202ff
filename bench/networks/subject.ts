import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';

import type { Api } from '@gantry/testing/api.ts';

import { Host, inside, serving } from './host.ts';

const PORT = 8400;
const CONNECTIONS = 3000;
const ROUND_TRIPS = 5000;
export const QUESTIONS = 20_000;
const SECONDS = '3';

const run = promisify(execFile);

/** Output of `peer.c`. */
type Spent = { ms: number; processorMs: number };

export function read(line: string): Spent {
  const [ms, processorMs] = line.trim().split(' ').map(Number);
  return { ms: ms!, processorMs: processorMs! };
}

/** Compiles `peer.c`. Returns the program's path. */
export async function buildPeer(folder: string): Promise<string> {
  const program = join(folder, 'peer');
  await run('cc', ['-O2', '-o', program, join(import.meta.dirname, 'peer.c')]);
  return program;
}

/** The uses of networks, on one engine. */
export class NetworkSubject {
  readonly #api: Api;
  readonly #host: Host;
  /** The path of the compiled `peer.c`. */
  readonly #peer: string;
  readonly #parts = new AsyncDisposableStack();
  #pids: { server: number; client: number } = { server: 0, client: 0 };
  #client = '';
  #made = 0;

  constructor(host: Host, peer: string) {
    this.#host = host;
    this.#peer = peer;
    this.#api = host.api;
  }

  /** A server and a client in one network of a user. */
  async prepare(): Promise<void> {
    await this.#api.post('/networks/create', { Name: 'traffic' });
    await this.#api.post('/networks/create', { Name: 'second' });
    const bindings = Object.fromEntries(
      [5201, 81, 82].map((port) => [`${port}/tcp`, [{ HostPort: String(PORT + (port % 100)) }]]),
    );
    const server = await this.#run('server', { PortBindings: bindings });
    this.#client = await this.#run('client', {});
    this.#pids = { server: await this.#pidOf(server), client: await this.#pidOf(this.#client) };
    this.#parts.use(await serving(this.#pids.server, 'iperf3', '-s', '--forceflush'));
    this.#parts.use(await serving(this.#pids.server, this.#peer, 'serve', '81', '82'));
    this.#parts.defer(async () => {
      for (const name of ['server', 'client']) await this.#api.delete(`/containers/${name}?force=1`);
      for (const name of ['traffic', 'second']) await this.#api.delete(`/networks/${name}`);
    });
  }

  async clear(): Promise<void> {
    await this.#parts.disposeAsync();
  }

  /** Milliseconds for a gigabyte, from the client or through the published port from another host. */
  async traffic(from: 'container' | 'outside'): Promise<number> {
    const options = ['-J', '-t', SECONDS];
    const text =
      from === 'container'
        ? await inside(this.#pids.client, 'iperf3', '-c', await this.#address(), ...options)
        : await this.#host.outside('iperf3', '-c', Host.MACHINE, '-p', String(PORT + 1), ...options);
    const { end } = JSON.parse(text) as { end: { sum_received: { bits_per_second: number } } };
    return 8e12 / end.sum_received.bits_per_second;
  }

  async connections(from: 'container' | 'outside'): Promise<number> {
    return (await this.#measured(from, 'connect', 81, CONNECTIONS)).ms;
  }

  /** Milliseconds of the processor for the client's end, and for most of what the kernel does on the way. */
  async workOfConnections(from: 'container' | 'outside'): Promise<number> {
    return (await this.#measured(from, 'connect', 81, CONNECTIONS)).processorMs;
  }

  async roundTrips(from: 'container' | 'outside'): Promise<number> {
    return (await this.#measured(from, 'trips', 82, ROUND_TRIPS)).ms;
  }

  /** `atOnce` 1: their latency. */
  async questions(atOnce: number): Promise<number> {
    const count = atOnce === 1 ? QUESTIONS / 4 : QUESTIONS;
    return read(await inside(this.#pids.client, this.#peer, 'ask', 'server', String(count), String(atOnce))).ms;
  }

  async startWithPorts(count: number): Promise<number> {
    const numbers = Array.from({ length: count }, (_, index) => 10_000 + index);
    const id = await this.#create(
      'ports',
      {
        PortBindings: Object.fromEntries(numbers.map((port) => [`${port}/tcp`, [{ HostPort: String(port) }]])),
      },
      Object.fromEntries(numbers.map((port) => [`${port}/tcp`, {}])),
    );
    const started = performance.now();
    await this.#expect('POST', `/containers/${id}/start`, 204);
    const spent = performance.now() - started;
    await this.#expect('DELETE', `/containers/${id}?force=1`, 204);
    return spent;
  }

  async createAndRemove(): Promise<void> {
    const name = this.#newName();
    await this.#expect('POST', '/networks/create', 201, { Name: name });
    await this.#expect('DELETE', `/networks/${name}`, 204);
  }

  async createMany(count: number): Promise<number> {
    const names = Array.from({ length: count }, () => this.#newName());
    const bodies = names.map((Name, index) => ({
      Name,
      IPAM: { Config: [{ Subnet: `10.200.${index}.0/24` }] }, // dockerd's own pools have 31
    }));
    const started = performance.now();
    await Promise.all(bodies.map(async (body) => await this.#expect('POST', '/networks/create', 201, body)));
    const spent = performance.now() - started;
    for (const name of names) await this.#expect('DELETE', `/networks/${name}`, 204);
    return spent;
  }

  async runTrue(): Promise<void> {
    const { body } = await this.#api.post<{ Id: string }>('/containers/create', {
      Image: 'busybox',
      Cmd: ['true'],
      HostConfig: { NetworkMode: 'traffic' },
    });
    await this.#expect('POST', `/containers/${body.Id}/start`, 204);
    await this.#expect('POST', `/containers/${body.Id}/wait`, 200);
    await this.#expect('DELETE', `/containers/${body.Id}`, 204);
  }

  async connectAndDisconnect(): Promise<void> {
    await this.#expect('POST', '/networks/second/connect', 200, { Container: this.#client });
    await this.#expect('POST', '/networks/second/disconnect', 200, { Container: this.#client });
  }

  async #measured(from: 'container' | 'outside', what: string, port: number, count: number): Promise<Spent> {
    const words = (host: string, at: number): string[] => [this.#peer, what, host, String(at), String(count)];
    return read(
      from === 'container'
        ? await inside(this.#pids.client, ...words(await this.#address(), port))
        : await this.#host.outside(...words(Host.MACHINE, PORT + port)),
    );
  }

  #newName(): string {
    this.#made += 1;
    return `made-${this.#made}`;
  }

  async #address(): Promise<string> {
    type Inspect = { NetworkSettings: { Networks: { traffic: { IPAddress: string } } } };
    return (await this.#api.get<Inspect>('/containers/server/json')).body.NetworkSettings.Networks.traffic.IPAddress;
  }

  async #run(name: string, hostConfig: object): Promise<string> {
    const { PortBindings = {} } = hostConfig as { PortBindings?: object };
    const exposed = Object.fromEntries(Object.keys(PortBindings).map((port) => [port, {}]));
    const id = await this.#create(name, { NetworkMode: 'traffic', ...hostConfig }, exposed);
    await this.#expect('POST', `/containers/${id}/start`, 204);
    return id;
  }

  async #create(name: string, HostConfig: object, ExposedPorts: object): Promise<string> {
    const body = { Image: 'busybox', Cmd: ['sleep', '100000'], StopSignal: 'SIGKILL', HostConfig, ExposedPorts };
    const answer = await this.#api.post<{ Id: string }>(`/containers/create?name=${name}`, body);
    if (answer.status !== 201) throw new Error(`create answered ${answer.status}: ${answer.raw.toString()}`);
    return answer.body.Id;
  }

  async #pidOf(id: string): Promise<number> {
    return (await this.#api.get<{ State: { Pid: number } }>(`/containers/${id}/json`)).body.State.Pid;
  }

  async #expect(method: 'POST' | 'DELETE', path: string, status: number, body?: object): Promise<void> {
    const answer = method === 'POST' ? await this.#api.post(path, body) : await this.#api.delete(path);
    if (answer.status !== status) throw new Error(`${method} ${path}: ${answer.status} ${answer.raw.toString()}`);
  }
}
