import { randomBytes } from 'node:crypto';

import { Type } from 'typebox';

import { macText } from '../../host/network/links.ts';
import { EngineError } from '../../lib/errors.ts';
import { ipText, parseIp } from '../../lib/notations/ip-address.ts';
import { PluginError, type Plugin, type Plugins } from '../../plugins/plugins.ts';
import { cidrText, contains, parseCidr, type Cidr } from '../addresses/cidr.ts';
import { poolsByFamily } from '../addresses/pools.ts';
import type { MadeEndpoint, NewEndpoint } from '../drivers/driver.ts';
import type { Endpoint } from '../endpoints/endpoint.ts';
import type { NetworkRecord, PoolConfig } from '../store.ts';
import type { CleanupQueue, PluginCall } from './cleanup-queue.ts';
import { ask, Nothing, PATIENT, pluginOf } from './network-protocol.ts';

export type AddressParts = Readonly<{
  plugins: Plugins;
  cleanups: CleanupQueue;
  networks: () => readonly NetworkRecord[];
  endpointsIn: (networkId: string) => readonly Endpoint[];
  /** Whether a range that the plugin has chosen is in use on this machine. */
  isTaken: (range: Cidr) => boolean;
}>;

const KIND = 'IpamDriver';
const GATEWAY = 'com.docker.network.gateway';
const MAC = 'com.docker.network.endpoint.macaddress';
const MAX_TRIES = 64;

const Capabilities = Type.Object({
  RequiresMACAddress: Type.Optional(Type.Boolean()),
  RequiresRequestReplay: Type.Optional(Type.Boolean()),
});
const Spaces = Type.Object({ LocalDefaultAddressSpace: Type.Optional(Type.String()) });
const Pool = Type.Object({
  PoolID: Type.String(),
  Pool: Type.String(),
  Data: Type.Optional(Type.Union([Type.Record(Type.String(), Type.String()), Type.Null()])),
});
const Address = Type.Object({ Address: Type.String() });

type Facts = Readonly<{ plugin: Plugin; space: string; needsMac: boolean; needsReplay: boolean }>;
type Range = Readonly<{ poolId: string; subnet: string; gateway: string }>;

/** Addresses that a plugin gives: its protocol is that of docker's remote address managers. */
export class PluginAddresses {
  readonly #name: string;
  readonly #parts: AddressParts;
  readonly #facts = new WeakMap<Plugin, Promise<Facts>>();
  /** The networks that the plugin knows, by their ids. */
  readonly #known = new Map<string, Promise<void>>();

  constructor(name: string, parts: AddressParts) {
    this.#name = name;
    this.#parts = parts;
  }

  /** The record with the ranges that the plugin gives a new network. Throws `failed`, `notFound` without the plugin. */
  async allocate(network: NetworkRecord): Promise<NetworkRecord> {
    const facts = await this.#ask(await this.#parts.plugins.get(this.#name, KIND, PATIENT));
    for (const other of this.#parts.networks()) {
      if (other.custom?.ipam.driver === network.custom?.ipam.driver) await this.#isKnown(other);
    }
    const { four, six } = poolsByFamily(network.custom?.ipam.pools ?? []);
    const wantsSix = network.custom?.enableIPv6 === true && six[0] !== undefined;
    if (four.length > 1 || (wantsSix && six.length > 1)) {
      throw new EngineError('forbidden', `${network.driver} driver doesn't support multiple subnets`);
    }
    const first = await this.#range(facts, network, four[0], false);
    const second = wantsSix ? await this.#range(facts, network, six[0], true) : undefined;
    this.#known.set(network.id, Promise.resolve());
    const { subnet, gateway } = first;
    const leased = { space: facts.space, four: first.poolId };
    if (second === undefined) return { ...network, subnet, gateway, leased };
    const ipv6 = { subnet: second.subnet, gateway: second.gateway };
    return { ...network, subnet, gateway, ipv6, leased: { ...leased, six: second.poolId } };
  }

  /** The endpoint with addresses of the plugin. */
  async request(network: NetworkRecord, wanted: NewEndpoint): Promise<NewEndpoint> {
    await this.#isKnown(network);
    await this.#parts.cleanups.flushEndpoints(network.id);
    const { plugin, needsMac } = await this.#ask(await pluginOf(this.#parts.plugins, this.#name, KIND));
    const mac = wanted.mac ?? (needsMac ? randomMac() : undefined);
    const options = needsMac ? { [MAC]: mac! } : null;
    const take = async (poolId: string, subnet: string, ip = ''): Promise<string> => {
      const address = await this.#address(plugin, { poolId, ip, options, subnet });
      this.#parts.cleanups.prepend(wanted.id, network.id, this.#release(poolId, address));
      return address;
    };
    const { leased, subnet, ipv6 } = network;
    if (leased === undefined || subnet === undefined) throw new Error(`network ${network.id} has no ranges`);
    const ip = await take(leased.four, subnet, wanted.ip);
    if (leased.six === undefined || ipv6 === undefined) return { ...wanted, ip, mac };
    return { ...wanted, ip, mac, ip6: await take(leased.six, ipv6.subnet, wanted.ip6) };
  }

  /** The calls to the plugin after the end of a network. */
  cleanupOfNetwork({ leased, gateway, ipv6, custom }: NetworkRecord): PluginCall[] {
    const { four, six } = poolsByFamily(custom?.ipam.pools ?? []);
    const of = (poolId: string | undefined, leads: string | undefined, pool?: PoolConfig): PluginCall[] =>
      poolId === undefined
        ? []
        : [
            ...[leads ?? [], Object.values(pool?.auxiliary ?? {})].flat().map((ip) => this.#release(poolId, ip)),
            this.#call('ReleasePool', { PoolID: poolId }),
          ];
    return [...of(leased?.four, gateway, four[0]), ...of(leased?.six, ipv6?.gateway, six[0])];
  }

  /** Calls that give back the addresses of an endpoint. */
  cleanupOfEndpoint({ leased }: NetworkRecord, { ipAddress, ipv6 }: MadeEndpoint): PluginCall[] {
    return [
      ...(leased === undefined || ipAddress === '' ? [] : [this.#release(leased.four, ipAddress)]),
      ...(leased?.six === undefined || ipv6 === undefined ? [] : [this.#release(leased.six, ipv6.ipAddress)]),
    ];
  }

  /** Repeats earlier requests after the daemon's start, for a plugin that wants that. */
  async #isKnown(network: NetworkRecord): Promise<void> {
    const known = this.#known.get(network.id) ?? this.#replay(network);
    this.#known.set(network.id, known);
    try {
      await known;
    } catch (error) {
      this.#known.delete(network.id); // it may answer the next time
      throw error;
    }
  }

  async #replay(network: NetworkRecord): Promise<void> {
    const { plugin, space, needsReplay } = await this.#ask(await pluginOf(this.#parts.plugins, this.#name, KIND));
    const { leased, subnet, gateway, ipv6, custom, id } = network;
    if (!needsReplay || leased === undefined || subnet === undefined) return;
    const { four, six } = poolsByFamily(custom?.ipam.pools ?? []);
    const endpoints = this.#parts.endpointsIn(id);
    const again = async (range: Range, pool: PoolConfig | undefined, ips: readonly string[]): Promise<void> => {
      const { poolId } = range;
      const V6 = parseCidr(range.subnet)?.range.family === 6;
      await this.#pool(
        plugin,
        { AddressSpace: space, Pool: range.subnet, SubPool: pool?.range ?? '', V6 },
        custom?.ipam.options ?? null,
      );
      await this.#address(plugin, {
        poolId,
        ip: range.gateway,
        options: { RequestAddressType: GATEWAY },
        subnet: range.subnet,
      });
      for (const ip of [...Object.values(pool?.auxiliary ?? {}), ...ips]) {
        await this.#address(plugin, { poolId, ip, options: null, subnet: range.subnet });
      }
    };
    await again(
      { poolId: leased.four, subnet, gateway: gateway ?? '' },
      four[0],
      endpoints.map(({ ipAddress }) => ipAddress),
    );
    if (leased.six === undefined || ipv6 === undefined) return;
    const ips = endpoints.flatMap((endpoint) => endpoint.ipv6?.ipAddress ?? []);
    await again({ poolId: leased.six, ...ipv6 }, six[0], ips);
  }

  /** A range with its gateway and reserved addresses. */
  async #range(
    { plugin, space }: Facts,
    network: NetworkRecord,
    pool: PoolConfig | undefined,
    V6: boolean,
  ): Promise<Range> {
    const { cleanups } = this.#parts;
    const { id, custom } = network;
    const queue = (call: PluginCall): void => cleanups.prepend(id, id, call);
    const asked = { AddressSpace: space, Pool: pool?.subnet ?? '', SubPool: pool?.range ?? '', V6 };
    const got = await this.#freePool(plugin, asked, custom?.ipam.options ?? null, queue);
    const { poolId, subnet } = got;
    const take = async (ip: string, options: object | null): Promise<string> => {
      const address = await this.#address(plugin, { poolId, ip, options, subnet });
      queue(this.#release(poolId, address));
      return address;
    };
    let gateway = got.gateway;
    if (gateway === '' || (pool?.gateway ?? '') !== '') {
      const wanted = pool?.gateway ?? '';
      try {
        gateway = await take(wanted, { RequestAddressType: GATEWAY });
      } catch (error) {
        if (!(error instanceof EngineError)) throw error;
        throw new EngineError('failed', `failed to allocate gateway (${wanted}): ${error.message}`, { cause: error });
      }
    }
    for (const ip of Object.values(pool?.auxiliary ?? {})) await take(ip, null);
    return { poolId, subnet, gateway };
  }

  /** One that the plugin chooses must not be in use; as in docker it is asked on while it holds those that are. */
  async #freePool(
    plugin: Plugin,
    asked: { AddressSpace: string; Pool: string; SubPool: string; V6: boolean },
    options: object | null,
    queue: (call: PluginCall) => void,
  ): Promise<Range> {
    const taken: string[] = [];
    try {
      for (let tries = 0; tries < MAX_TRIES; tries += 1) {
        const got = await this.#pool(plugin, asked, options);
        const range = parseCidr(got.subnet)!.range;
        if (asked.Pool !== '' || !this.#parts.isTaken(range)) {
          queue(this.#call('ReleasePool', { PoolID: got.poolId }));
          return got;
        }
        taken.push(got.poolId);
      }
    } finally {
      for (const PoolID of taken) await ask(plugin, `${KIND}.ReleasePool`, { PoolID }, Nothing);
    }
    throw new EngineError('failed', `plugin "${this.#name}" has no range that is not in use on this machine`);
  }

  async #pool(plugin: Plugin, asked: object, options: object | null): Promise<Range> {
    const { AddressSpace, Pool: pool, SubPool, V6 } = asked as Record<string, unknown>;
    const body = { AddressSpace, Pool: pool, SubPool, Options: options, V6 };
    const answer = await ask(plugin, `${KIND}.RequestPool`, body, Pool);
    const range = parseCidr(answer.Pool)?.range;
    if (range === undefined) throw this.#garbled('RequestPool', `invalid CIDR address: ${answer.Pool}`);
    const gateway = answer.Data?.[GATEWAY] ?? '';
    const read = gateway === '' ? undefined : parseCidr(gateway);
    if (gateway !== '' && read === undefined) throw this.#garbled('RequestPool', `invalid CIDR address: ${gateway}`);
    return { poolId: answer.PoolID, subnet: cidrText(range), gateway: read === undefined ? '' : ipText(read.address) };
  }

  async #address(
    plugin: Plugin,
    { poolId, ip, options, subnet }: { poolId: string; ip: string; options: object | null; subnet: string },
  ): Promise<string> {
    const body = { PoolID: poolId, Address: ip, Options: options };
    const { Address: text } = await ask(plugin, `${KIND}.RequestAddress`, body, Address);
    const address = parseCidr(text)?.address ?? parseIp(text);
    if (address === undefined) throw this.#garbled('RequestAddress', `invalid CIDR address: ${text}`);
    if (contains(parseCidr(subnet)!.range, address)) return ipText(address);
    throw this.#garbled('RequestAddress', `${text} is not in the range ${subnet}`);
  }

  async #ask(plugin: Plugin): Promise<Facts> {
    const known = this.#facts.get(plugin) ?? this.#askAnew(plugin);
    this.#facts.set(plugin, known);
    try {
      return await known;
    } catch (error) {
      this.#facts.delete(plugin);
      throw error;
    }
  }

  async #askAnew(plugin: Plugin): Promise<Facts> {
    const { RequiresMACAddress, RequiresRequestReplay } = await capabilitiesOf(plugin);
    const { LocalDefaultAddressSpace: space = '' } = await ask(plugin, `${KIND}.GetDefaultAddressSpaces`, {}, Spaces);
    return { plugin, space, needsMac: RequiresMACAddress === true, needsReplay: RequiresRequestReplay === true };
  }

  #release(poolId: string, ip: string): PluginCall {
    return this.#call('ReleaseAddress', { PoolID: poolId, Address: ip });
  }

  #call(method: string, body: PluginCall['body']): PluginCall {
    return { plugin: this.#name, kind: KIND, method, body };
  }

  #garbled(method: string, what: string): PluginError {
    return new PluginError('garbled', `${KIND}.${method}: plugin "${this.#name}": ${what}`, {});
  }
}

/** Older plugins do not know the question. */
async function capabilitiesOf(
  plugin: Plugin,
): Promise<{ RequiresMACAddress?: boolean; RequiresRequestReplay?: boolean }> {
  try {
    return await ask(plugin, `${KIND}.GetCapabilities`, {}, Capabilities);
  } catch (error) {
    if (error instanceof PluginError && error.how === 'refused') return {};
    throw error;
  }
}

function randomMac(): string {
  return macText(Buffer.concat([Buffer.from([0x02, 0x42]), randomBytes(4)]));
}
