import { existsSync, readFileSync } from 'node:fs';
import { arch, cpus, hostname, release, totalmem } from 'node:os';

import { hasCode } from '../lib/errors.ts';
import type { Info } from './schema.ts';

const ARCHITECTURES: Readonly<Record<string, string>> = { x64: 'x86_64', arm64: 'aarch64' };

/** The part of GET /info that says what the machine and its kernel offer. */
export function machineInfo() {
  return {
    ...cgroupInfo(),
    IPv4Forwarding: isOn('/proc/sys/net/ipv4/ip_forward'),
    BridgeNfIptables: isOn('/proc/sys/net/bridge/bridge-nf-call-iptables'),
    BridgeNfIp6tables: isOn('/proc/sys/net/bridge/bridge-nf-call-ip6tables'),
    KernelVersion: release(),
    OperatingSystem: osRelease('PRETTY_NAME') ?? 'Linux',
    OSVersion: osRelease('VERSION_ID') ?? '',
    OSType: 'linux',
    Architecture: ARCHITECTURES[arch()] ?? arch(),
    NCPU: cpus().length,
    MemTotal: totalmem(),
    Name: hostname(),
  } satisfies Partial<Info>;
}

/** The limits that there are: the file of version 1, or that of version 2. */
function cgroupInfo() {
  const isVersion2 = hasFile('cgroup.controllers');
  return {
    CgroupDriver: 'cgroupfs',
    CgroupVersion: isVersion2 ? '2' : '1',
    MemoryLimit: hasFile('memory/memory.limit_in_bytes', 'memory.max'),
    SwapLimit: hasFile('memory/memory.memsw.limit_in_bytes', 'memory.swap.max'),
    KernelMemory: hasFile('memory/memory.kmem.limit_in_bytes'),
    KernelMemoryTCP: hasFile('memory/memory.kmem.tcp.limit_in_bytes'),
    CpuCfsPeriod: hasFile('cpu/cpu.cfs_period_us', 'cpu.max'),
    CpuCfsQuota: hasFile('cpu/cpu.cfs_quota_us', 'cpu.max'),
    CPUShares: hasFile('cpu/cpu.shares', 'cpu.weight'),
    CPUSet: hasFile('cpuset/cpuset.cpus', 'cpuset.cpus'),
    PidsLimit: hasFile('pids') || isVersion2,
    OomKillDisable: hasFile('memory/memory.oom_control'),
  } satisfies Partial<Info>;
}

function hasFile(...files: string[]): boolean {
  return files.some((file) => existsSync(`/sys/fs/cgroup/${file}`));
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
