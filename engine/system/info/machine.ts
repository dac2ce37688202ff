import { readFileSync } from 'node:fs';
import { arch, cpus, hostname, release, totalmem } from 'node:os';

import { detectCgroups, type Cgroups } from '../../host/cgroups/cgroups.ts';
import { limitSupport } from '../../host/cgroups/limit-support.ts';
import { isRootless } from '../../host/rootless.ts';
import { hasCode } from '../../lib/errors.ts';
import { confinesByAppArmor } from '../../oci/security/apparmor.ts';
import type { Info } from '../schema.ts';

const ARCHITECTURES: ReadonlyMap<string, string> = new Map(Object.entries({ x64: 'x86_64', arm64: 'aarch64' }));

/** The part of GET /info that says what the machine and its kernel offer. */
export function machineInfo({ mapsUsers }: { mapsUsers: boolean }) {
  return {
    ...cgroupInfo(mapsUsers),
    IPv4Forwarding: isOn('/proc/sys/net/ipv4/ip_forward'),
    BridgeNfIptables: isOn('/proc/sys/net/bridge/bridge-nf-call-iptables'),
    BridgeNfIp6tables: isOn('/proc/sys/net/bridge/bridge-nf-call-ip6tables'),
    KernelVersion: release(),
    OperatingSystem: osRelease('PRETTY_NAME') ?? 'Linux',
    OSVersion: osRelease('VERSION_ID') ?? '',
    OSType: 'linux',
    Architecture: ARCHITECTURES.get(arch()) ?? arch(),
    NCPU: cpus().length,
    MemTotal: totalmem(),
    Name: hostname(),
  } satisfies Partial<Info>;
}

function cgroupInfo(mapsUsers: boolean) {
  const cgroups = detectCgroups();
  const support = limitSupport(cgroups);
  return {
    CgroupVersion: String(cgroups.version),
    MemoryLimit: support.memory,
    SwapLimit: support.swap,
    KernelMemory: support.kernelMemory,
    KernelMemoryTCP: support.kernelMemoryTcp,
    CpuCfsPeriod: support.cpuTime,
    CpuCfsQuota: support.cpuTime,
    CPUShares: support.cpuShares,
    CPUSet: support.cpuset,
    PidsLimit: support.pids,
    OomKillDisable: support.oomKillDisable,
    SecurityOptions: securityOptions(cgroups, mapsUsers),
  } satisfies Partial<Info>;
}

function securityOptions({ version }: Cgroups, mapsUsers: boolean): string[] {
  const names = [...(confinesByAppArmor() ? ['apparmor'] : []), 'seccomp,profile=default'];
  const modes = [...(mapsUsers ? ['userns'] : []), ...(version === 2 ? ['cgroupns'] : [])];
  return [...names, ...modes, ...(isRootless ? ['rootless'] : [])].map((name) => `name=${name}`);
}

function isOn(path: string): boolean {
  return readText(path).trim() === '1';
}

function osRelease(key: string): string | undefined {
  return new RegExp(`^${key}="?([^"\\n]+)"?$`, 'm').exec(readText('/etc/os-release'))?.[1];
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return '';
    throw error;
  }
}
