import { execFileSync } from 'node:child_process';
import { globSync, readdirSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/**
 * Lists what a test, a demo or a crash may have left on this machine: mounts, links, namespaces, nft tables, cgroups
 * and processes with Gantry's name or below the temporary folder, and the files there of runtimes that were killed. One
 * line each, to compare before and after.
 */
export function findLeftovers(): string[] {
  return [...mounts(), ...links(), ...namespaces(), ...tables(), ...cgroups(), ...processes(), ...files()];
}

function mounts(): string[] {
  return readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .map((line) => line.split(' ')[4] ?? '')
    .filter((target) => /^\/tmp\/|gantry/.test(target))
    .map((target) => `mount ${target}`);
}

function links(): string[] {
  return readdirSync('/sys/class/net')
    .filter((name) => /^(gantry|gt|veth|br-|docker)/.test(name))
    .map((name) => `link ${name}`);
}

function namespaces(): string[] {
  return globSync('/run/netns/*').map((path) => `namespace ${path}`);
}

function tables(): string[] {
  try {
    return execFileSync('nft', ['list', 'tables'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
      .split('\n')
      .filter((line) => line.includes('gantry'))
      .map((line) => `nft ${line}`);
  } catch (error) {
    // Without nft or without root the tables cannot be listed.
    if (error instanceof Error) return [];
    throw error;
  }
}

function cgroups(): string[] {
  return globSync(['/sys/fs/cgroup/gantry*/*/', '/sys/fs/cgroup/*/gantry*/*/']).map((path) => `cgroup ${path}`);
}

function files(): string[] {
  return globSync(join(tmpdir(), 'crun.*')).map((path) => `file ${path}`);
}

function processes(): string[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && name !== String(process.pid))
    .flatMap((pid) => {
      const command = commandOf(pid);
      return /gantry-shim|gantry-resolver|gantry-proxy|engine\/main\.ts|dockerd|docker-registry|redis-server|containerd/.test(
        command,
      )
        ? [`process ${pid} ${command.slice(0, 80)}`]
        : [];
    });
}

function commandOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
  } catch {
    return ''; // it ended after it was listed
  }
}
