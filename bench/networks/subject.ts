import type { Api } from '@gantry/testing/api.ts';

import { Host, inside, serving } from './host.ts';

const PORT = 8400;
const PORTS = 1000;
const CONNECTIONS = 3000;
const ROUND_TRIPS = 5000;
const QUESTIONS = 20_000;
const SECONDS = '3';

/** Prints the milliseconds that so many connections take, one after the other; `ends` counts the bytes to wait for. */
const CONNECT = `
  const [host, port, count] = process.argv.slice(1);
  const net = require('node:net');
  const started = performance.now();
  let left = Number(count);
  (function next() {
    if (left-- === 0) { console.log(performance.now() - started); return; }
    net.connect({ host, port }).on('data', () => {}).on('close', next);
  })();`;
const ROUND_TRIP = `
  const [host, port, count] = process.argv.slice(1);
  const socket = require('node:net').connect({ host, port, noDelay: true });
  let left = Number(count), started = 0;
  const next = () => { if (left-- === 0) { console.log(performance.now() - started); process.exit(); } socket.write('x'); };
  socket.on('connect', () => { started = performance.now(); next(); }).on('data', next);`;
/** Closes each connection at once on one port, sends back on the next. */
const SERVE = `
  const net = require('node:net');
  net.createServer((s) => s.end()).listen(81, () => net.createServer({ noDelay: true }, (s) => s.pipe(s).on('error', () => {})).listen(82, () => console.log('ready')));`;
/** Questions for a name, so many of them under way at a time. */
const ASK = `
  const [name, count, atOnce] = process.argv.slice(1);
  const question = Buffer.concat([Buffer.from([0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0]), Buffer.from([name.length]), Buffer.from(name), Buffer.from([0, 0, 1, 0, 1])]);
  const socket = require('node:dgram').createSocket('udp4');
  let sent = 0, got = 0; const started = performance.now();
  const ask = () => { if (sent < count) { sent++; question.writeUInt16BE(sent & 0xffff); socket.send(question, 53, '127.0.0.11'); } };
  socket.on('message', (answer) => {
    if ((answer[3] & 15) !== 0 || answer.readUInt16BE(6) !== 1) throw new Error('no answer');
    if (++got === Number(count)) { console.log(performance.now() - started); socket.close(); } else ask();
  });
  for (let n = 0; n < Number(atOnce); n++) ask();`;

/** The uses of networks, on one engine. */
export class NetworkSubject {
  readonly #api: Api;
  readonly #host: Host;
  readonly #parts = new AsyncDisposableStack();
  #pids: { server: number; client: number } = { server: 0, client: 0 };
  #client = '';
  #made = 0;

  constructor(host: Host) {
    this.#host = host;
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
    this.#parts.use(await serving(this.#pids.server, process.execPath, '-e', SERVE));
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
    return await this.#measured(from, CONNECT, 81, CONNECTIONS);
  }

  async roundTrips(from: 'container' | 'outside'): Promise<number> {
    return await this.#measured(from, ROUND_TRIP, 82, ROUND_TRIPS);
  }

  /** `atOnce` 1: their latency. */
  async questions(atOnce: number): Promise<number> {
    const count = atOnce === 1 ? QUESTIONS / 4 : QUESTIONS;
    const words = ['-e', ASK, 'server', String(count), String(atOnce)];
    return Number(await inside(this.#pids.client, process.execPath, ...words));
  }

  async startWithPorts(): Promise<number> {
    const numbers = Array.from({ length: PORTS }, (_, index) => 10_000 + index);
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

  async #measured(from: 'container' | 'outside', code: string, port: number, count: number): Promise<number> {
    const words = (host: string, at: number): string[] => ['-e', code, host, String(at), String(count)];
    return Number(
      from === 'container'
        ? await inside(this.#pids.client, process.execPath, ...words(await this.#address(), port))
        : await this.#host.outside(process.execPath, ...words(Host.MACHINE, PORT + port)),
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
