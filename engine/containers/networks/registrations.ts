import { readFileSync } from 'node:fs';

import type { Config } from '../../config/daemon-config.ts';
import type { Engine } from '../../engine.ts';
import { hasCode } from '../../lib/errors.ts';
import type { Registration, Upstream } from '../../networks/dns/registration.ts';
import type { Endpoint } from '../../networks/endpoints/endpoint.ts';
import type { Networks } from '../../networks/networks.ts';
import { isDefaultNetwork, isPredefinedName, networkModeOf } from '../../networks/settings/mode.ts';
import { parseLink } from '../links/links.ts';
import { isAlive } from '../state.ts';
import type { Container, ContainerStore } from '../store.ts';
import { namesOf } from './attachments.ts';

type Needs = Pick<Engine, 'config' | 'containers' | 'networks'>;
/** A process that holds the container's network namespace. */
type Holder = Readonly<{ pid: number; netns: string }>;

const FALLBACK = ['8.8.8.8', '8.8.4.4'];

/** Whether a container has the resolver in its resolv.conf. */
export function usesResolver(endpoints: readonly Endpoint[]): boolean {
  return endpoints.some(({ networkName }) => !isPredefinedName(networkName));
}

/** A container as the resolver needs it. */
export function registrationOf(engine: Needs, container: Container, { pid, netns }: Holder): Registration {
  const { id, attachments } = container;
  const endpoints = engine.networks.endpointsOf(id);
  const user = endpoints.filter((endpoint) => isNamed(engine.networks, endpoint));
  const links = [
    ...user.flatMap(({ networkName }) => attachments[networkName]?.links ?? []),
    ...(isDefaultNetwork(networkModeOf(container.hostConfig.NetworkMode)) ? [] : (container.hostConfig.Links ?? [])),
  ];
  return {
    containerId: id,
    pid,
    netns,
    networks: user
      .toSorted((a, b) => (a.networkName < b.networkName ? -1 : 1))
      .map(({ networkId, networkName, ipAddress, ipv6 }) => ({
        id: networkId,
        label: networkName,
        ip: ipAddress,
        ip6: ipv6?.ipAddress ?? '',
        names: namesIn(container, networkName),
      })),
    links: links.map((link) => {
      const { ref, alias } = parseLink(link);
      return { alias, target: targetOf(engine.containers, ref) };
    }),
    upstreams: endpoints.some((endpoint) => leadsOut(engine.networks, endpoint))
      ? upstreamsOf(engine.config, container)
      : [],
  };
}

/** Whether the names of a network are known to its containers. */
function isNamed(networks: Networks, { networkName, networkId, isWayOut }: Endpoint): boolean {
  return (
    !isPredefinedName(networkName) && isWayOut !== true && networks.store.network(networkId)?.overlay?.ingress !== true
  );
}

/** All containers that the resolver serves now. */
export function currentRegistrations(engine: Needs): Registration[] {
  return engine.containers.all().flatMap((container) => {
    const { state, id } = container;
    if (!isAlive(state) || !usesResolver(engine.networks.endpointsOf(id))) return [];
    return [registrationOf(engine, container, holderOf(state.pid))];
  });
}

/** The first process of a running container. */
export function holderOf(pid: number): Holder {
  return { pid, netns: `/proc/${pid}/ns/net` };
}

function namesIn(container: Container, network: string): readonly string[] {
  const attachment = container.attachments[network];
  return attachment === undefined ? [container.name] : namesOf(container, attachment);
}

/** A link may name the container by its id. */
function targetOf(containers: ContainerStore, ref: string): string {
  return containers.named(ref.replace(/^\//, ''))?.name ?? containers.get(ref)?.name ?? ref;
}

function leadsOut(networks: Networks, { networkId }: Endpoint): boolean {
  const network = networks.store.network(networkId);
  return network !== undefined && networks.driverOf(network).leadsOut?.(network) === true;
}

/** The servers of the client's or the daemon's settings, or those of the machine. */
function upstreamsOf(config: Config, { hostConfig }: Container): Upstream[] {
  const chosen = [hostConfig.Dns ?? [], config.dns].find((servers) => servers.length > 0);
  if (chosen !== undefined) return chosen.map((ip) => ({ ip, inside: /^(127\.|::1$)/.test(ip) }));
  const machine = machineServers();
  return (machine.length === 0 ? FALLBACK : machine).map((ip) => ({ ip, inside: false }));
}

function machineServers(): string[] {
  try {
    const text = readFileSync('/etc/resolv.conf', 'utf8');
    return [...text.matchAll(/^nameserver\s+([\d.a-fA-F:]+)/gm)].map(([, ip]) => ip!);
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return [];
    throw error;
  }
}
