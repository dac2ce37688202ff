import type { Config } from '../../config/daemon-config.ts';
import { isLoopback, parseHost } from '../../config/hosts.ts';
import { isRootless } from '../../host/rootless.ts';
import type { Info } from '../schema.ts';

type Machine = Pick<
  Info,
  | ('MemoryLimit' | 'SwapLimit' | 'CpuCfsQuota' | 'CpuCfsPeriod' | 'CPUShares' | 'CPUSet')
  | ('OomKillDisable' | 'CgroupVersion' | 'IPv4Forwarding')
>;

/** `Warnings` of GET /info: the command line prints them. In dockerd's words. */
export function warningsOf(machine: Machine, config: Pick<Config, 'hosts' | 'tls' | 'tlsverify'>): string[] {
  const rows: [isFine: boolean, warning: string][] = [
    [machine.MemoryLimit, 'No memory limit support'],
    [machine.SwapLimit, 'No swap limit support'],
    [machine.OomKillDisable || machine.CgroupVersion === '2', 'No oom kill disable support'],
    [machine.CpuCfsQuota, 'No cpu cfs quota support'],
    [machine.CpuCfsPeriod, 'No cpu cfs period support'],
    [machine.CPUShares, 'No cpu shares support'],
    [machine.CPUSet, 'No cpuset support'],
    [machine.IPv4Forwarding, 'IPv4 forwarding is disabled'],
  ];
  const missing = rows.filter(([isFine]) => !isFine).map(([, warning]) => `WARNING: ${warning}`);
  return [...openHosts(config), ...(isRootless ? [NO_CGROUPS] : []), ...missing];
}

const NO_CGROUPS = 'WARNING: Running in rootless-mode without cgroups: no limits, no usage, no pause';

function openHosts({ hosts, tls, tlsverify }: Pick<Config, 'hosts' | 'tls' | 'tlsverify'>): string[] {
  return hosts.flatMap((text) => {
    const host = parseHost(text, tls);
    if (host.kind !== 'tcp' || isLoopback(host.address) || tlsverify) return [];
    const [scheme, lack] = tls ? ['https', 'TLS client verification'] : ['http', 'encryption'];
    const address = text.replace(/^tcp:\/\//, '');
    return [`WARNING: API is accessible on ${scheme}://${address} without ${lack}.\n${ROOT_ACCESS}`];
  });
}

const ROOT_ACCESS = `         Access to the remote API is equivalent to root access on the host. Refer
         to the 'Docker daemon attack surface' section in the documentation for
         more information: https://docs.docker.com/go/attack-surface/`;
