import { closeSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';

import { Database } from '@gantry/engine/db/database.ts';
import { Events } from '@gantry/engine/events/events.ts';
import { newNetns, unshare, withNetns } from '@gantry/engine/host/namespaces.ts';
import { addAddress, addRoute } from '@gantry/engine/host/network/addresses.ts';
import { changeLink, createVeth, getLink } from '@gantry/engine/host/network/links.ts';
import { Netlink } from '@gantry/engine/host/network/netlink.ts';
import { DEFAULT_VXLAN_PORT } from '@gantry/engine/host/network/vxlan.ts';
import { systemClock } from '@gantry/engine/lib/clock.ts';
import { Background } from '@gantry/engine/lib/concurrency/background.ts';
import type { Endpoint } from '@gantry/engine/networks/endpoints/endpoint.ts';
import { reconcile } from '@gantry/engine/networks/endpoints/reconcile.ts';
import { closeSandbox, openSandbox, type SandboxRequest } from '@gantry/engine/networks/endpoints/sandbox.ts';
import type { NetworkSettings } from '@gantry/engine/networks/needs.ts';
import { Networks } from '@gantry/engine/networks/networks.ts';
import { networkModeOf } from '@gantry/engine/networks/settings/mode.ts';
import { Plugins } from '@gantry/engine/plugins/plugins.ts';
import { pino } from 'pino';

import { Peer } from './peer.ts';

export const HOST_IP = '192.0.2.2';
export const OUTSIDE_IP = '192.0.2.1';

/**
 * A network of its own for the tests of one file: this thread moves into a new network namespace, which has an address
 * and a neighbour outside. Tests cannot reach the real machine's network.
 */
export function becomeTestHost(): { host: number; outside: number } {
  unshare('net');
  const host = openSync('/proc/thread-self/ns/net', 'r');
  const outside = newNetns();
  using route = new Netlink();
  route.apply(
    changeLink(1, { up: true }),
    createVeth({ name: 'eth0', up: true, peer: { name: 'eth0', netns: outside } }),
  );
  const eth0 = getLink(route, 'eth0').index;
  route.apply(addAddress({ link: eth0, ip: HOST_IP, prefixLength: 24 }), changeLink(eth0, { up: true }));
  withNetns(outside, () => {
    using there = new Netlink();
    const link = getLink(there, 'eth0').index;
    there.apply(
      changeLink(1, { up: true }),
      changeLink(link, { up: true }),
      addAddress({ link, ip: OUTSIDE_IP, prefixLength: 24 }),
    );
  });
  route.apply(addRoute({ destination: '0.0.0.0', prefixLength: 0, gateway: OUTSIDE_IP }));
  return { host, outside };
}

/** `netns` is closed with the daemon. */
export type Attached = { netns: number; endpoint: Endpoint };

/** The parts of a daemon that networks need, with folders of its own. `crash` leaves everything as a kill would. */
export class TestDaemon implements AsyncDisposable {
  readonly directory: string;
  readonly #settings: Partial<NetworkSettings>;
  #db: Database;
  events: Events;
  networks: Networks;
  readonly #held: number[] = [];

  constructor(settings: Partial<NetworkSettings> = {}, directory = mkdtempSync(join(tmpdir(), 'gantry-networks-'))) {
    this.directory = directory;
    this.#settings = settings;
    writeFileSync(join(directory, 'gantry.db'), '', { flag: 'a' });
    this.#db = new Database(join(directory, 'gantry.db'));
    this.events = new Events(this.#db, systemClock, { error: console.error });
    this.networks = this.#open();
  }

  static async start(settings: Partial<NetworkSettings> = {}): Promise<TestDaemon> {
    const daemon = new TestDaemon(settings);
    await reconcile(daemon, []);
    return daemon;
  }

  async attach(containerId: string, request: Partial<SandboxRequest> = {}): Promise<Attached> {
    const { netns, endpoints } = await openSandbox(this, {
      containerId,
      containerName: containerId,
      mode: networkModeOf('default'),
      isDisabled: false,
      portBindings: {},
      publishAll: false,
      exposed: [],
      ...request,
    });
    const [endpoint] = endpoints;
    if (netns === undefined || endpoint === undefined) throw new Error(`${containerId} is in no network`);
    this.#held.push(netns);
    return { netns, endpoint };
  }

  /** In the test machine's namespace. */
  async attachHost(containerId: string): Promise<void> {
    const ports = { portBindings: {}, publishAll: false, exposed: [] };
    const names = { containerId, containerName: containerId, mode: networkModeOf('host'), isDisabled: false };
    await openSandbox(this, { ...names, ...ports });
  }

  /** A container that serves its own name on TCP port 80 and UDP port 53. */
  async serve(containerId: string, request: Partial<SandboxRequest> = {}): Promise<Attached & { peer: Peer }> {
    const attached = await this.attach(containerId, request);
    const peer = new Peer(attached.netns);
    await Promise.all([peer.serveTcp(80, containerId), peer.serveUdp(53, containerId)]);
    return { ...attached, peer };
  }

  /** Waits until a ready sandbox is in stock. */
  async stocked(): Promise<void> {
    while (this.networks.bridges().ready === 0) await setImmediate();
  }

  /** The network events so far: action, container, name and type of the network. */
  told(): string[] {
    return this.#db.sql
      .prepare("SELECT action, attributes FROM events WHERE type = 'network' ORDER BY sequence")
      .all()
      .map(({ action, attributes }) => {
        const { container, name, type } = JSON.parse(String(attributes)) as Record<string, string>;
        return `${String(action)} ${container} ${name} ${type}`;
      });
  }

  /** The state after a SIGKILL of the daemon: its sockets are closed, nothing is cleaned up. */
  crash(): void {
    this.networks[Symbol.dispose]();
    this.#db[Symbol.dispose]();
  }

  async startAgain(live: readonly string[], settings: Partial<NetworkSettings> = {}): Promise<void> {
    this.#db = new Database(join(this.directory, 'gantry.db'));
    this.events = new Events(this.#db, systemClock, { error: console.error });
    this.networks = this.#open(settings);
    await reconcile(this, live);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { containerId } of this.networks.store.endpoints()) closeSandbox(this, containerId);
    await this.networks.removeAll();
    this.#db[Symbol.dispose]();
    for (const netns of this.#held) closeSync(netns);
    rmSync(this.directory, { recursive: true, force: true });
  }

  #open(settings: Partial<NetworkSettings> = {}): Networks {
    const log = pino({ level: 'silent' });
    return new Networks({
      background: new Background(systemClock, log),
      db: this.#db,
      clock: systemClock,
      log,
      dataRoot: this.directory,
      tunnelPort: () => DEFAULT_VXLAN_PORT,
      bridge: 'gantry0',
      bip: '',
      fixedCidrV6: '',
      mtu: 0,
      pools: [],
      dnsFolder: join(this.directory, 'dns'),
      proxyFolder: join(this.directory, 'proxies'),
      overlayFolder: join(this.directory, 'overlay'),
      plugins: new Plugins(systemClock, []),
      served: () => [],
      nameOf: (id) => id,
      netnsOf: () => undefined,
      ofCluster: () => undefined,
      closedPorts: () => [],
      ...this.#settings,
      ...settings,
    });
  }
}
