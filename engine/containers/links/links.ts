import type { Engine } from '../../engine.ts';
import { EngineError } from '../../lib/errors.ts';
import { DEFAULT_NETWORK, isDefaultNetwork, isUserNetwork, networkModeOf } from '../../networks/settings/mode.ts';
import { rewriteHosts } from '../runs/preparation/etc-files.ts';
import type { HostConfig } from '../settings/host-config/host-config-schema.ts';
import { isAlive } from '../state.ts';
import type { Container, ContainerStore } from '../store.ts';
import { linkVariables } from './link-environment.ts';
import { networkOwner } from './network-owner.ts';

type Needs = Pick<Engine, 'config' | 'containers' | 'networks'>;

/** A link to a container under an `alias`. In the record it is `<id>:<alias>`, because a name may change. */
type Link = Readonly<{ alias: string; target: Container }>;

/** Parses `name`, `name:alias`, or `/name:/other/alias` as an inspect shows it. Throws `invalid`. */
export function parseLink(text: string): { ref: string; alias: string } {
  if (text === '') throw new EngineError('invalid', 'empty string specified for links');
  const [ref = '', written = ref, ...more] = text.split(':');
  const alias = ref.startsWith('/') ? (written.split('/').pop() ?? '') : written;
  if (more.length > 0) throw new EngineError('invalid', `bad format for links: ${text}`);
  if (!/^[^\s/]+$/.test(alias)) throw new EngineError('invalid', `invalid alias of a link: ${text}`);
  return { ref, alias };
}

/** The links in the form of the record; the last one of an alias wins. `find` throws for an unknown container. */
export function storedLinks(links: readonly string[], find: (ref: string) => Container): string[] {
  const byAlias = new Map<string, string>();
  for (const { ref, alias } of links.map(parseLink)) {
    const target = networkOwner(find(ref), find);
    if (networkModeOf(target.hostConfig.NetworkMode).kind === 'host') {
      const reason = "host type networking can't be used with links. This would result in undefined behavior";
      throw new EngineError('invalid', `conflicting options: ${reason}`);
    }
    byAlias.set(alias, `${target.id}:${alias}`);
  }
  return [...byAlias.values()];
}

/** Links in a user network: those to existing containers in the form of the record, others as they are written. */
export function storedAliases(links: readonly string[], containers: ContainerStore): string[] {
  const byAlias = new Map<string, string>();
  for (const { ref, alias } of links.map(parseLink)) {
    const name = ref.replace(/^\//, '');
    const target = containers.named(name) ?? containers.get(name);
    const owner = target === undefined ? name : networkOwner(target, (other) => containers.find(other)).id;
    byAlias.set(alias, `${owner}:${alias}`);
  }
  return [...byAlias.values()];
}

/** The container's links in the form of an inspect; in a user network its endpoint shows them. */
export function presentLinks(containers: ContainerStore, container: Container): string[] | null {
  if (isUserNetwork(networkModeOf(container.hostConfig.NetworkMode))) return null;
  const links = linksOf(containers, container);
  return links.length === 0 ? null : links.map(({ alias, target }) => `/${target.name}:/${container.name}/${alias}`);
}

/** The aliases of containers in others, such as `/web/database`, by their ids. */
export function linkNames(containers: ContainerStore): ReadonlyMap<string, readonly string[]> {
  const names = new Map<string, string[]>();
  for (const container of containers.all()) {
    for (const { alias, target } of linksOf(containers, container)) {
      names.set(target.id, [...(names.get(target.id) ?? []), `/${container.name}/${alias}`]);
    }
  }
  return names;
}

/** Lines for the hosts file. Throws `failed` for a linked container that is not running, or not on the bridge. */
export function linkHosts(engine: Needs, container: Container): string[] {
  if (!usesLinks(container)) return [];
  return linksOf(engine.containers, container).map(({ alias, target }) => {
    if (!isAlive(target.state)) {
      const place = `/${target.name} AS /${container.name}/${alias}`;
      throw new EngineError('failed', `Cannot link to a non running container: ${place}`);
    }
    const address = addressOf(engine, target);
    if (address === '') {
      throw new EngineError('failed', `Cannot link to /${target.name}, as it does not belong to the default network`);
    }
    const names = [alias, target.config.Hostname, ...(alias === target.name ? [] : [target.name])];
    return `${address}\t${names.join(' ')}`;
  });
}

/** The variables of all links to running containers. */
export function linkEnvironment(engine: Omit<Needs, 'config'>, container: Container): string[] {
  if (!usesLinks(container)) return [];
  return linksOf(engine.containers, container).flatMap(({ alias, target }) => {
    const ipAddress = addressOf(engine, target);
    if (ipAddress === '') return [];
    const { Env: environment, ExposedPorts } = target.config;
    return linkVariables({
      name: container.name,
      alias,
      ipAddress,
      ports: Object.keys(ExposedPorts ?? {}),
      environment,
    });
  });
}

/** Updates the hosts files of containers with links to a started one, which may have another address now. */
export function tellLinkedAddress(engine: Needs, id: string): void {
  const address = addressOf(engine, { id });
  if (address === '') return;
  for (const other of engine.containers.all()) {
    if (!isAlive(other.state) || !usesLinks(other)) continue;
    for (const { alias, target } of linksOf(engine.containers, other)) {
      if (target.id !== id) continue;
      rewriteHosts(engine.config, other.id, (lines) => lines.map((line) => withAddress(line, alias, address)));
    }
  }
}

/** Removes the link `web/database`; a running container keeps its hosts and variables. Throws `notFound`, `failed`. */
export function removeLink(containers: ContainerStore, name: string): void {
  const [ref = '', alias] = name.replace(/^\//, '').split(/\/(.*)/s);
  const { id } = containers.find(ref);
  if (alias === undefined) {
    throw new EngineError('failed', 'Conflict, cannot remove the default link name of the container');
  }
  containers.change(id, (current) => {
    const links = current.hostConfig.Links ?? [];
    const kept = links.filter((link) => parseLink(link).alias !== alias);
    if (kept.length === links.length) throw new EngineError('notFound', `No such container: ${name}`);
    return { ...current, hostConfig: { ...current.hostConfig, Links: kept.length === 0 ? null : kept } };
  });
}

/** Removes the links to a removed container. */
function linksOf(containers: ContainerStore, { hostConfig }: Pick<Container, 'hostConfig'>): Link[] {
  return (hostConfig.Links ?? []).flatMap((link) => {
    const { ref, alias } = parseLink(link);
    const target = containers.get(ref);
    return target === undefined ? [] : [{ alias, target }];
  });
}

function usesLinks({ hostConfig }: { hostConfig: HostConfig }): boolean {
  return hostConfig.Links !== null && isDefaultNetwork(networkModeOf(hostConfig.NetworkMode));
}

function addressOf({ networks }: Pick<Needs, 'networks'>, { id }: Pick<Container, 'id'>): string {
  return networks.endpointsOf(id).find(({ networkName }) => networkName === DEFAULT_NETWORK)?.ipAddress ?? '';
}

function withAddress(line: string, alias: string, address: string): string {
  const [, names = ''] = line.split('\t');
  return names.split(' ')[0] === alias ? `${address}\t${names}` : line;
}
