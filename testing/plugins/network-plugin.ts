import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

import { TestPlugin } from '../plugin.ts';

const execute = promisify(execFile);

type Data = { Pool: string; Gateway: string };
type Network = { bridge: string; gateway: string; routes: object[]; endpoints: Set<string> };
type Pool = { prefix: string; used: Set<string> };
type Body = Record<string, string>;
type Reply = Record<string, unknown> | number | string;

/** Networks of a bridge each in the namespace `netns`, and addresses, by the documentation of docker's remote drivers. */
export class NetworkPlugin implements AsyncDisposable {
  readonly networks = new Map<string, Network>();
  readonly pools = new Map<string, Pool>();
  /** Answers instead of the plugin's own, by method. */
  readonly instead = new Map<string, (body: Body) => Reply | Promise<Reply>>();
  readonly #netns: string;
  #server: TestPlugin | undefined;
  #nextPool = 1;

  private constructor(netns: string) {
    this.#netns = netns;
  }

  /** `kinds`: `NetworkDriver`, `IpamDriver`, or both. */
  static async start(socketPath: string, netns: string, kinds: readonly string[]): Promise<NetworkPlugin> {
    const plugin = new NetworkPlugin(netns);
    await plugin.listen(socketPath, kinds);
    return plugin;
  }

  /** Also after `leave`: what it knew it still knows. */
  async listen(socketPath: string, kinds: readonly string[]): Promise<void> {
    const methods: Record<string, (body: Body) => Record<string, unknown> | Promise<Record<string, unknown>>> = {
      ...this.#network(),
      ...this.#ipam(),
    };
    const judged = Object.entries(methods).map(([name, own]) => [
      name,
      async (body: Body) => await (this.instead.get(name) ?? own)(body),
    ]);
    const calls = this.#server?.calls ?? [];
    this.#server = await TestPlugin.start(socketPath, kinds, Object.fromEntries(judged));
    this.#server.calls.push(...calls);
  }

  /** Nobody listens any more. */
  async leave(): Promise<void> {
    await this.#server?.[Symbol.asyncDispose]();
  }

  get calls(): TestPlugin['calls'] {
    return this.#server?.calls ?? [];
  }

  /** It has lost its memory: names of ranges come again. */
  restartCounting(): void {
    this.#nextPool = 1;
  }

  /** The addresses and endpoints that were not released. */
  held(): { endpoints: number; networks: number; addresses: number; pools: number } {
    return {
      endpoints: [...this.networks.values()].reduce((sum, { endpoints }) => sum + endpoints.size, 0),
      networks: this.networks.size,
      addresses: [...this.pools.values()].reduce((sum, { used }) => sum + used.size, 0),
      pools: this.pools.size,
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.leave();
  }

  async #ip(...words: string[]): Promise<void> {
    await execute('nsenter', [`--net=${this.#netns}`, 'ip', ...words]);
  }

  #network(): Record<string, (body: Body) => Record<string, unknown> | Promise<Record<string, unknown>>> {
    return {
      'NetworkDriver.GetCapabilities': () => ({ Scope: 'local', ConnectivityScope: 'local' }),
      'NetworkDriver.CreateNetwork': async ({ NetworkID = '', Options, IPv4Data }) => {
        const generic = (Options as unknown as Record<string, Record<string, string>>)['com.docker.network.generic'];
        if (generic?.['refuse'] !== undefined) return { Err: `refused: ${generic['refuse']}` };
        const bridge = `pb${NetworkID.slice(0, 10)}`;
        const gateway = (IPv4Data as unknown as Data[])[0]?.Gateway ?? '';
        await this.#ip('link', 'add', bridge, 'type', 'bridge');
        if (gateway !== '') await this.#ip('address', 'add', gateway, 'dev', bridge);
        await this.#ip('link', 'set', bridge, 'up');
        const routes = generic?.['route'] === undefined ? [] : [{ Destination: generic['route'], RouteType: 1 }];
        this.networks.set(NetworkID, { bridge, gateway: gateway.split('/')[0]!, routes, endpoints: new Set() });
        return {};
      },
      'NetworkDriver.DeleteNetwork': async ({ NetworkID = '' }) => {
        const network = this.networks.get(NetworkID);
        if (network === undefined) return { Err: 'no such network' };
        await this.#ip('link', 'delete', network.bridge);
        this.networks.delete(NetworkID);
        return {};
      },
      'NetworkDriver.CreateEndpoint': async ({ NetworkID = '', EndpointID = '', Interface }) => {
        const network = this.networks.get(NetworkID);
        if (network === undefined) return { Err: 'no such network' };
        const [outer, inner] = linksOf(EndpointID);
        await this.#ip('link', 'add', outer, 'type', 'veth', 'peer', 'name', inner);
        await this.#ip('link', 'set', outer, 'master', network.bridge, 'up');
        network.endpoints.add(EndpointID);
        const wanted = Interface as unknown as Record<string, string>;
        return wanted['MacAddress'] === '' ? { Interface: { MacAddress: macOf(EndpointID) } } : {};
      },
      'NetworkDriver.EndpointOperInfo': () => ({ Value: { note: 'of the plugin' } }),
      'NetworkDriver.DeleteEndpoint': async ({ NetworkID = '', EndpointID = '' }) => {
        const endpoints = this.networks.get(NetworkID)?.endpoints;
        if (endpoints?.delete(EndpointID) !== true) return { Err: 'no such endpoint' };
        await this.#ip('link', 'delete', linksOf(EndpointID)[0]).catch(() => undefined); // it went with its container
        return {};
      },
      'NetworkDriver.Join': ({ NetworkID = '', EndpointID = '' }) => ({
        InterfaceName: { SrcName: linksOf(EndpointID)[1], DstPrefix: 'net' },
        Gateway: this.networks.get(NetworkID)?.gateway ?? '',
        StaticRoutes: this.networks.get(NetworkID)?.routes ?? [],
      }),
      'NetworkDriver.Leave': () => ({}),
      'NetworkDriver.ProgramExternalConnectivity': () => ({}),
      'NetworkDriver.RevokeExternalConnectivity': () => ({}),
      'NetworkDriver.DiscoverNew': () => ({}),
      'NetworkDriver.DiscoverDelete': () => ({}),
    };
  }

  #ipam(): Record<string, (body: Body) => Record<string, unknown>> {
    return {
      'IpamDriver.GetCapabilities': () => ({ RequiresMACAddress: false }),
      'IpamDriver.GetDefaultAddressSpaces': () => ({
        LocalDefaultAddressSpace: 'here',
        GlobalDefaultAddressSpace: 'everywhere',
      }),
      'IpamDriver.RequestPool': ({ Pool = '' }) => {
        const pool = Pool === '' ? `10.77.${this.#nextPool}.0/24` : Pool;
        const id = `pool-${this.#nextPool}`;
        this.#nextPool += 1;
        this.pools.set(id, { prefix: pool.replace(/\d+\/\d+$/, ''), used: new Set() });
        return { PoolID: id, Pool: pool, Data: {} };
      },
      'IpamDriver.ReleasePool': ({ PoolID = '' }) => (this.pools.delete(PoolID) ? {} : { Error: 'no such pool' }),
      'IpamDriver.RequestAddress': ({ PoolID = '', Address = '' }) => {
        const pool = this.pools.get(PoolID);
        if (pool === undefined) return { Error: `no pool ${PoolID}` };
        // Unlike the engine's own: from the end.
        let last = 250;
        while (pool.used.has(`${pool.prefix}${last}`)) last -= 1;
        const address = Address === '' ? `${pool.prefix}${last}` : Address;
        if (pool.used.has(address)) return { Error: `${address} is taken` };
        pool.used.add(address);
        return { Address: `${address}/24`, Data: {} };
      },
      'IpamDriver.ReleaseAddress': ({ PoolID = '', Address = '' }) =>
        this.pools.get(PoolID)?.used.delete(Address) === true ? {} : { Error: `${Address} is not taken` },
    };
  }
}

/** The ends of an endpoint's pair: at the bridge, and for the container. */
function linksOf(endpoint: string): [string, string] {
  return [`po${endpoint.slice(0, 10)}`, `pi${endpoint.slice(0, 10)}`];
}

function macOf(endpoint: string): string {
  return ['02', '77', ...endpoint.slice(0, 8).match(/../g)!].join(':');
}
