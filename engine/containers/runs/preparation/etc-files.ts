import {
  appendFileSync,
  chmodSync,
  chownSync,
  closeSync,
  mkdirSync,
  openSync,
  readFileSync,
  readSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';

import type { Config } from '../../../config/daemon-config.ts';
import type { Engine } from '../../../engine.ts';
import { mappedRoot } from '../../../host/users/id-map.ts';
import { hasCode } from '../../../lib/errors.ts';
import { networkOwner } from '../../links/network-owner.ts';
import type { Container, ContainerStore } from '../../store.ts';
import { containerFolder } from '../places.ts';
import { hasSameSettings, resolvConfOf, type ResolvConfPlace } from './resolv-conf.ts';

type Needs = Pick<Engine, 'config' | 'containers'>;

type EtcFiles = { hostname: string; hosts: string; resolvConf: string };

const LOCAL = [
  '127.0.0.1\tlocalhost',
  '::1\tlocalhost ip6-localhost ip6-loopback',
  'fe00::0\tip6-localnet',
  'ff00::0\tip6-mcastprefix',
  'ff02::1\tip6-allnodes',
  'ff02::2\tip6-allrouters',
];

/** The paths of the container's own hostname, hosts and resolv.conf. */
export function etcFilesOf(config: Config, id: string): EtcFiles {
  const folder = containerFolder(config, id);
  return { hostname: join(folder, 'hostname'), hosts: join(folder, 'hosts'), resolvConf: join(folder, 'resolv.conf') };
}

/** The container's own entries, without addresses if it has none; `links` are lines for the hosts file. */
export type Place = Readonly<{
  addresses: readonly string[];
  gateway: string;
  links: readonly string[];
  /** Whether it is in a user network, and so uses the daemon's resolver. */
  usesResolver: boolean;
}>;

/** A container in another one's network has that one's name, which is in the files that they share. */
export function withOwnersHostname(containers: ContainerStore, container: Container): Container {
  const { Hostname, Domainname } = networkOwner(container, (ref) => containers.find(ref)).config;
  if (container.config.Hostname === Hostname && container.config.Domainname === Domainname) return container;
  return containers.change(container.id, (current) => ({
    ...current,
    config: { ...current.config, Hostname, Domainname },
  }));
}

/** A container in another one's network shares that one's files. */
export function filesFor(engine: Needs, container: Container, place: Place): EtcFiles | undefined {
  const owner = networkOwner(container, (ref) => engine.containers.find(ref));
  return owner === container ? writeEtcFiles(engine.config, container, place) : etcFilesOf(engine.config, owner.id);
}

function writeEtcFiles(config: Config, container: Container, place: Place): EtcFiles {
  const files = etcFilesOf(config, container.id);
  mkdirSync(containerFolder(config, container.id), { recursive: true, mode: 0o710 });
  const isHost = container.hostConfig.NetworkMode === 'host';
  const { uid, gid } = container.idMap === undefined ? { uid: 0, gid: 0 } : mappedRoot(container.idMap);
  writeForAll(files.hostname, `${container.config.Hostname}\n`);
  writeForAll(files.hosts, isHost ? hostsOfHost(container) : hostsText(container, place));
  writeForAll(files.resolvConf, resolvText(config, container, { isHost, usesResolver: place.usesResolver }));
  for (const path of Object.values(files)) chownSync(path, uid, gid);
  return files;
}

/** Readable for all users of the container; users of the machine cannot enter the folder. */
function writeForAll(path: string, text: string): void {
  writeFileSync(path, text);
  chmodSync(path, 0o644);
}

/** The host's own, and what the client adds. */
function hostsOfHost({ hostConfig }: Container): string {
  return [readHost('/etc/hosts'), ...extraHosts(hostConfig.ExtraHosts, '127.0.0.1').map((line) => `${line}\n`)].join(
    '',
  );
}

/** Adds the lines of a network that a running container has joined. */
export function addHostsAddresses(config: Config, container: Container, addresses: readonly string[]): void {
  const lines = addresses.map((address) => `${ownLine(container, address)}\n`);
  if (lines.length > 0) appendFileSync(etcFilesOf(config, container.id).hosts, lines.join(''));
}

/** Takes them away again. */
export function dropHostsAddresses(config: Config, container: Container, addresses: readonly string[]): void {
  if (addresses.length === 0) return;
  const own = new Set(addresses.map((address) => ownLine(container, address)));
  rewriteHosts(config, container.id, (lines) => lines.filter((line) => !own.has(line)));
}

const HOSTS_LIMIT_BYTES = 1024 * 1024;

/**
 * Changes the lines of a container's hosts file. Written in place, because the file is mounted into the container, which
 * may have changed it: one that is too large is left alone.
 */
export function rewriteHosts(
  config: Config,
  id: string,
  change: (lines: readonly string[]) => readonly string[],
): void {
  const { hosts } = etcFilesOf(config, id);
  const bytes = firstBytes(hosts, HOSTS_LIMIT_BYTES + 1);
  if (bytes.length > HOSTS_LIMIT_BYTES) return;
  writeFileSync(hosts, change(bytes.toString().split('\n')).join('\n'));
}

/** Reads up to a limit instead of asking for the size, which may change before the read. */
function firstBytes(path: string, limit: number): Buffer {
  const file = openSync(path, 'r');
  try {
    const buffer = Buffer.alloc(limit);
    return buffer.subarray(0, readSync(file, buffer));
  } finally {
    closeSync(file);
  }
}

/** The full name, and the first part of one with dots. */
function ownLine({ config: { Hostname, Domainname } }: Container, address: string): string {
  const full = Domainname === '' ? Hostname : `${Hostname}.${Domainname}`;
  const short = full.split('.', 1)[0]!;
  return `${address}\t${short === full ? full : `${full} ${short}`}`;
}

function hostsText(container: Container, { addresses, gateway, links }: Place): string {
  const { hostConfig } = container;
  const extra = extraHosts(hostConfig.ExtraHosts, gateway);
  const own = addresses.map((address) => ownLine(container, address));
  return `${[...LOCAL, ...extra, ...links, ...own].join('\n')}\n`;
}

/** `host-gateway` stands for the address of the host. */
function extraHosts(entries: readonly string[] | null, gateway: string): string[] {
  return (entries ?? []).flatMap((entry) => {
    const colon = entry.indexOf(':');
    const written = entry.slice(colon + 1);
    const address = written === 'host-gateway' ? gateway : written;
    return address === '' ? [] : [`${address}\t${entry.slice(0, colon)}`];
  });
}

/**
 * Changes the file of a running container that has joined its first user network, unless the container has changed it.
 */
export function useResolver(config: Config, container: Container): void {
  const { resolvConf } = etcFilesOf(config, container.id);
  const before = resolvText(config, container, { isHost: false, usesResolver: false });
  const present = firstBytes(resolvConf, before.length * 4 + 1).toString();
  if (!hasSameSettings(present, before)) return;
  writeFileSync(resolvConf, resolvText(config, container, { isHost: false, usesResolver: true }));
}

function resolvText(config: Config, { hostConfig }: Container, place: ResolvConfPlace): string {
  const settings = {
    servers: firstGiven(hostConfig.Dns, config.dns),
    search: firstGiven(hostConfig.DnsSearch, config.dnsSearch),
    options: firstGiven(hostConfig.DnsOptions, config.dnsOpts),
  };
  return resolvConfOf(readHost('/etc/resolv.conf'), settings, place);
}

function firstGiven(...lists: (readonly string[] | null)[]): readonly string[] | undefined {
  return lists.find((list): list is readonly string[] => list !== null && list.length > 0);
}

function readHost(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return '';
    throw error;
  }
}
