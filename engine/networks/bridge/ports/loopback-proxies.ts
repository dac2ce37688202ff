import { spawn } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';

import { lockHolder } from '../../../host/files/lock-holder.ts';
import { isRootless } from '../../../host/rootless.ts';
import type { Background } from '../../../lib/concurrency/background.ts';
import { EngineError, hasCode } from '../../../lib/errors.ts';
import { isSix } from '../../../lib/notations/ip-address.ts';
import type { Place } from '../../endpoints/endpoint.ts';
import { ANY_SIX, isOnHost, LOOPBACK_SIX, type PublishedPort } from '../../endpoints/ports.ts';

/** The path of gantry-proxy. */
const PROXY_PROGRAM = join(import.meta.dirname, '../../../../build/gantry-proxy');
/** In a child, behind stdin, stdout and stderr. */
const FIRST_FD = 3;
const RETRY_DELAY_MS = 1000;
/** A killed process is gone within a millisecond or two. */
const GONE_ATTEMPTS = 2000;

/** `fd`: the reservation of the port, which stays the caller's. */
type ProxiedPort = Readonly<{ port: PublishedPort; fd: number }>;

/**
 * The processes that serve published ports on the loopback of IPv6, out of which rules lead nothing: one for the ports of
 * an endpoint. They outlive the daemon, and are found again by the locks on files in `folder`. See shim/proxy/README.md.
 */
export class LoopbackProxies {
  readonly #folder: string;
  readonly #background: Background;
  /** Those that this daemon has started, by the path of their lock. */
  readonly #started = new Map<string, number>();

  constructor(folder: string, background: Background) {
    this.#folder = folder;
    this.#background = background;
  }

  /** Serves ports of an endpoint; none is fine. */
  start(place: Place, ports: readonly ProxiedPort[]): void {
    const [first] = ports;
    if (first === undefined) return;
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
    this.#spawn(this.#pathOf(first.port), place, ports);
  }

  /** Ends the process that serves these ports, and returns when they are free. None is not an error. */
  end(ports: readonly PublishedPort[]): void {
    const [first] = ports;
    if (first !== undefined) this.#end(this.#pathOf(first));
  }

  /** Whether a process that an earlier daemon has started serves these ports. */
  isServing(ports: readonly PublishedPort[]): boolean {
    const [first] = ports;
    return first !== undefined && lockHolder(this.#pathOf(first)) !== undefined;
  }

  /** At the daemon's start: ends those that serve none of these endpoints' ports. */
  prune(endpoints: readonly (readonly PublishedPort[])[]): void {
    const kept = new Set(endpoints.flatMap(([first]) => (first === undefined ? [] : [this.#pathOf(first)])));
    for (const path of this.#paths()) if (!kept.has(path)) this.#end(path);
  }

  #spawn(path: string, place: Place, ports: readonly ProxiedPort[]): void {
    const words = ports.flatMap(({ port: { protocol, containerPort, hostIp } }, index) => [
      protocol,
      String(FIRST_FD + index),
      targetOf(place, hostIp),
      String(containerPort),
    ]);
    const stdio = ['ignore' as const, 'ignore' as const, 'ignore' as const, ...ports.map(({ fd }) => fd)];
    const child = spawn(PROXY_PROGRAM, [path, ...words], { stdio, detached: true, env: {}, cwd: '/' });
    child.unref();
    const { pid } = child;
    if (pid === undefined) throw new EngineError('failed', `${PROXY_PROGRAM} cannot be started`);
    this.#started.set(path, pid);
    const isWanted = (): boolean => this.#started.get(path) === pid;
    child.once('exit', () => {
      this.#background.after(RETRY_DELAY_MS, 'start the proxy of published ports again', { path }, () => {
        if (isWanted()) this.#spawn(path, place, ports);
      });
    });
  }

  #end(path: string): void {
    const pid = this.#started.get(path) ?? lockHolder(path);
    this.#started.delete(path);
    if (pid !== undefined) endProcess(pid);
    rmSync(path, { force: true });
  }

  #paths(): string[] {
    try {
      return readdirSync(this.#folder).map((name) => join(this.#folder, name));
    } catch (error) {
      if (hasCode(error, 'ENOENT')) return [];
      throw error;
    }
  }

  #pathOf({ protocol, hostIp, hostPort }: PublishedPort): string {
    const address = isSix(hostIp) ? (hostIp === ANY_SIX ? 'any' : 'loopback') : hostIp;
    return join(this.#folder, `${protocol}-${address}-${hostPort}`);
  }
}

/** That of the port's family, if the container has it. */
function targetOf({ ipAddress, ipv6 }: Place, hostIp: string): string {
  return isSix(hostIp) || ipAddress === '' ? (ipv6?.ipAddress ?? ipAddress) : ipAddress;
}

/**
 * The ports that a proxy has to serve: `::` is also the loopback. In a user's own network namespace there are no packets
 * from outside that rules could lead, so all of them.
 */
export function selectProxied(ports: readonly PublishedPort[]): PublishedPort[] {
  return ports.filter(
    (port) => isOnHost(port) && (isRootless || port.hostIp === ANY_SIX || port.hostIp === LOOPBACK_SIX),
  );
}

/** Kills a process and waits until it is gone: its ports may be published again at once. */
function endProcess(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    // Refused: it is of a user's earlier namespaces, whose keeper was killed.
    if (hasCode(error, 'ESRCH') || hasCode(error, 'EPERM')) return;
    throw error;
  }
  const pause = new Int32Array(new SharedArrayBuffer(4));
  for (let attempt = 0; attempt < GONE_ATTEMPTS && isThere(pid); attempt += 1) Atomics.wait(pause, 0, 0, 1);
}

/** A zombie has closed its sockets. */
function isThere(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return !/^\) [ZX]/.test(stat.slice(stat.lastIndexOf(')')));
  } catch (error) {
    if (hasCode(error, 'ENOENT') || hasCode(error, 'ESRCH')) return false;
    throw error;
  }
}
