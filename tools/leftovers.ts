import { execFileSync } from 'node:child_process';
import { globSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/**
 * Lists the things that a run of tests has to remove: mounts, processes, files and cgroups of the run, and the links and
 * tables of the network namespace that it runs in. One line each, to compare before and after.
 *
 * `folder` is the run's temporary folder. Things of other runs and of the user's own daemon do not name it. An empty cgroup names
 * nothing: it counts unless another engine runs (`isAlone`).
 */
export function findLeftovers(folder: string, isAlone = !othersRun(folder)): string[] {
  return [
    ...mounts(folder),
    ...links(),
    ...tables(),
    ...cgroups(folder, isAlone),
    ...processes(folder),
    ...files(folder),
  ];
}

function mounts(folder: string): string[] {
  return readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .map((line) => line.split(' ')[4] ?? '')
    .filter((target) => target.startsWith(`${folder}/`))
    .map((target) => `mount ${target}`);
}

function links(): string[] {
  return output('ip', '-o', 'link')
    .map((line) => /^\d+: ([^:@]+)/.exec(line)?.[1] ?? '')
    .filter((name) => /^(gantry|gt|veth|br-|docker)/.test(name))
    .map((name) => `link ${name}`);
}

function tables(): string[] {
  return output('nft', 'list', 'tables')
    .filter((line) => line.includes('gantry'))
    .map((line) => `nft ${line}`);
}

const GROUPS = ['{gantry*,docker}/*', 'system.slice/{gantry,docker}-*.scope'];

function cgroups(folder: string, isAlone: boolean): string[] {
  return globSync(GROUPS.map((group) => `/sys/fs/cgroup/{,*/}${group}/cgroup.procs`))
    .filter((path) => {
      const pids = read(path).split('\n').filter(Boolean);
      return pids.length === 0 ? isAlone : pids.some((pid) => hasRootIn(pid, folder));
    })
    .map((path) => `cgroup ${dirname(path)}`);
}

function files(folder: string): string[] {
  return globSync(join(folder, 'crun.*')).map((path) => `file ${path}`);
}

function processes(folder: string): string[] {
  return programsOfTests()
    .filter(({ pid }) => isOfRun(pid, folder))
    .map(({ pid, command }) => `process ${pid} ${command.slice(0, 80)}`);
}

function othersRun(folder: string): boolean {
  return programsOfTests().some(({ pid }) => !isOfRun(pid, folder));
}

function programsOfTests(): { pid: string; command: string }[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => ({ pid, command: read(`/proc/${pid}/cmdline`).replaceAll('\0', ' ') }))
    .filter(({ command }) => isProgramOfTests(command));
}

function isProgramOfTests(command: string): boolean {
  return /gantry-shim|gantry-resolver|gantry-proxy|engine\/main\.ts|daemon\.cjs|dockerd|docker-registry|redis-server|containerd/.test(
    command,
  );
}

/** A process of the run names its folder in its arguments or in TMPDIR. */
function isOfRun(pid: string, folder: string): boolean {
  return ['cmdline', 'environ'].some((file) => read(`/proc/${pid}/${file}`).includes(folder));
}

/** The root of a container's process is an overlay of folders of its engine. */
function hasRootIn(pid: string, folder: string): boolean {
  const lines = read(`/proc/${pid}/mountinfo`).split('\n');
  return lines.some((line) => line.split(' ')[4] === '/' && line.includes(folder));
}

/** The text of a file of /proc or /sys; empty when its process or cgroup has ended since it was listed. */
function read(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && /^(ENOENT|ESRCH|ENODEV|EINVAL)$/.test(String(error.code)))
      return '';
    throw error;
  }
}

function output(command: string, ...words: string[]): string[] {
  return execFileSync(command, words, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] }).split('\n');
}
