import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';

import { mountBind, setPropagation, unmount } from '@gantry/engine/host/mounts/mount.ts';
import { newId } from '@gantry/engine/lib/ids.ts';
import { shimArguments, type RootFs, type ShimLog } from '@gantry/engine/runtime/shim/shim-options.ts';
import { SHIM_PROGRAM } from '@gantry/engine/runtime/shim/shim-program.ts';
import { Shim, type AttachOptions, type ShimOptions } from '@gantry/engine/runtime/shim/shim.ts';

type Wanted = Partial<Pick<ShimOptions, 'tty' | 'openStdin' | 'stdinOnce' | 'runtimeSeconds'>> & {
  /** False: none. */
  log?: Omit<ShimLog, 'path'> | false;
  memoryBytes?: number;
  netns?: number;
  /** The root is an overlay that the shim mounts. */
  overlay?: boolean;
  /** The program to run instead of runc, and a mount that it must not see. */
  runtime?: string;
  hidden?: string;
  /** Hooks of the runtime's `config.json`. */
  hooks?: object;
};

/** An attach to both streams from now on. */
export const OUTPUT: AttachOptions = { stdin: false, stdout: true, stderr: true, logs: false, stream: true };

const COMMANDS = 'sh cat true sleep seq dd stty head kill tail yes tr readlink printf cmp mount touch'.split(' ');

/** A bundle with a busybox root for shims, without a daemon. */
export class TestBundle implements AsyncDisposable {
  readonly directory: string;
  readonly id = newId();
  readonly logPath: string;
  readonly #shims: Shim[] = [];
  readonly #clients: Socket[] = [];
  #mounted = false;

  /** `below`: folders between the temporary place and the bundle. */
  constructor(below = '') {
    this.directory = join(mkdtempSync(join(tmpdir(), 'gantry-shim-')), below);
    mkdirSync(this.directory, { recursive: true });
    this.logPath = join(this.directory, 'log.json');
  }

  /** The folder of the container's shim. */
  get folder(): string {
    return join(this.directory, 'bundle');
  }

  get state(): string {
    return join(this.directory, 'state');
  }

  get overlay(): RootFs {
    const [upper, work, target] = ['upper', 'work', 'merged'].map((name) => join(this.directory, 'writable/id', name));
    return { base: this.directory, lower: ['layer'], upper: upper!, work: work!, target: target! };
  }

  /** Spawns a shim for this command, without starting the command. */
  async shim(args: readonly string[], wanted: Wanted = {}): Promise<Shim> {
    const shim = await Shim.spawn(this.options(wanted));
    const netns = wanted.netns === undefined ? undefined : `/proc/${shim.pid}/fd/3`;
    const root = wanted.overlay === true ? this.overlay.target : join(this.folder, 'rootfs');
    writeFileSync(join(this.folder, 'config.json'), JSON.stringify(config(this.id, args, root, netns, wanted)));
    this.#shims.push(shim);
    return shim;
  }

  /** Makes the root; returns the options of the shim. */
  options(wanted: Wanted = {}): ShimOptions {
    mkdirSync(this.folder, { recursive: true });
    const rootfs = wanted.overlay === true ? this.#makeOverlay() : undefined;
    if (rootfs === undefined) makeRoot(join(this.folder, 'rootfs'));
    return {
      id: this.id,
      directory: this.folder,
      runtime: { path: wanted.runtime ?? 'runc', root: this.state, hidden: wanted.hidden },
      mode: { kind: 'container', rootfs, netns: wanted.netns },
      tty: wanted.tty ?? false,
      openStdin: wanted.openStdin ?? false,
      stdinOnce: wanted.stdinOnce ?? false,
      log: wanted.log === false ? undefined : { ...wanted.log, path: this.logPath },
      cgroupPath: `/gantry-test/${this.id}`,
      runtimeSeconds: wanted.runtimeSeconds,
    };
  }

  /** Starts the command by a daemon that then dies; resolves with the shim's messages to that daemon. */
  async orphan(args: readonly string[]): Promise<string> {
    const options = this.options();
    const root = join(this.folder, 'rootfs');
    writeFileSync(join(this.folder, 'config.json'), JSON.stringify(config(this.id, args, root, undefined, {})));
    const control = spawnWithControl(options).control;
    control.write('start\n');
    let told = '';
    for await (const chunk of control) {
      told += String(chunk);
      if (/^started .*\n/m.test(told)) break; // which closes the connection
    }
    return told;
  }

  /** Finds the shim of an orphan; the bundle ends it. */
  async reconnect(): Promise<Shim | undefined> {
    const shim = await Shim.reconnect(this.folder);
    if (shim !== undefined) this.#shims.push(shim);
    return shim;
  }

  /** A process in the running container. */
  async exec(args: readonly string[], wanted: Wanted = {}): Promise<Shim> {
    const id = newId();
    const directory = join(this.directory, id);
    mkdirSync(directory);
    writeFileSync(join(directory, 'process.json'), JSON.stringify(processOf(args, wanted.tty ?? false)));
    const shim = await Shim.spawn({
      id,
      directory,
      runtime: { path: 'runc', root: this.state },
      mode: { kind: 'exec', container: this.id },
      tty: wanted.tty ?? false,
      openStdin: wanted.openStdin ?? false,
      stdinOnce: true,
    });
    this.#shims.push(shim);
    return shim;
  }

  /** A stream of its output, closed with the bundle: a stream left unread by a failed test would keep the shim. */
  async attach(shim: Shim, options: AttachOptions): Promise<Socket> {
    const socket = await shim.attach(options);
    this.#clients.push(socket);
    return socket;
  }

  /** A runtime that runs this script. */
  runtime(script: string): string {
    const path = join(this.directory, 'runtime');
    writeFileSync(path, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
    return path;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#clients) socket.destroy();
    for (const shim of this.#shims.toReversed()) {
      await shim.end();
    }
    // A killed shim leaves its container behind.
    execFileSync('runc', ['--root', this.state, 'delete', '--force', this.id], { stdio: 'ignore' });
    if (this.#mounted) unmount(this.directory, { lazy: true });
    rmSync(join(tmpdir(), this.directory.slice(tmpdir().length + 1).split('/')[0]!), { recursive: true, force: true });
  }

  /** As in the daemon, mounts in here do not propagate to the host. */
  #makeOverlay(): RootFs {
    if (!this.#mounted) {
      mountBind(this.directory, this.directory);
      setPropagation(this.directory, 'private');
      this.#mounted = true;
    }
    const { upper, work, target } = this.overlay;
    for (const folder of [upper, work, target]) mkdirSync(folder, { recursive: true });
    makeRoot(join(this.directory, 'layer'));
    return this.overlay;
  }
}

/** Spawns only the shim's program; the holder of `control` is its daemon. */
export function spawnWithControl(options: ShimOptions): { control: Socket; ended: Promise<unknown[]> } {
  const child = spawn(SHIM_PROGRAM, shimArguments(options), {
    stdio: ['ignore', 'ignore', 'inherit', 'ignore', 'pipe'],
  });
  const control = child.stdio[4];
  if (!(control instanceof Socket)) throw new Error('the shim has no control connection');
  return { control, ended: once(child, 'exit') };
}

/** All output of a framed stream up to its end, both streams in the order in which they came. */
export async function payload(socket: Socket): Promise<Buffer> {
  const framed = await buffer(socket);
  const pieces = [];
  for (let offset = 0; offset < framed.length;) {
    const size = framed.readUInt32BE(offset + 4);
    pieces.push(framed.subarray(offset + 8, offset + 8 + size));
    offset += 8 + size;
  }
  return Buffer.concat(pieces);
}

/** Resolves when the stream has carried these bytes, and consumes them. */
export async function seen(socket: Socket, expected: string): Promise<void> {
  let said = '';
  await new Promise<void>((resolve, reject) => {
    const read = (chunk: Buffer): void => {
      said += chunk.toString('latin1');
      if (!said.includes(expected)) return;
      socket.off('data', read).pause();
      resolve();
    };
    socket
      .on('data', read)
      .once('end', () => reject(new Error(`ended with ${JSON.stringify(said)}`)))
      .resume();
  });
}

function makeRoot(root: string): void {
  for (const folder of ['bin', 'proc', 'dev', 'tmp', 'sys']) mkdirSync(join(root, folder), { recursive: true });
  copyFileSync('/bin/busybox', join(root, 'bin/busybox'));
  for (const name of COMMANDS) {
    rmSync(join(root, 'bin', name), { force: true });
    symlinkSync('busybox', join(root, 'bin', name));
  }
  writeFileSync(join(root, 'noexec'), 'no program', { mode: 0o644 });
}

function processOf(args: readonly string[], terminal: boolean): object {
  return { terminal, args, cwd: '/', env: ['PATH=/bin'], user: { uid: 0, gid: 0 } };
}

function config(
  id: string,
  args: readonly string[],
  root: string,
  netns: string | undefined,
  { tty = false, memoryBytes, hooks }: Wanted,
): object {
  return {
    ociVersion: '1.0.2',
    process: processOf(args, tty),
    root: { path: root },
    mounts: [
      { destination: '/proc', type: 'proc', source: 'proc' },
      { destination: '/dev', type: 'tmpfs', source: 'tmpfs' },
      {
        destination: '/dev/pts',
        type: 'devpts',
        source: 'devpts',
        options: ['newinstance', 'ptmxmode=0666', 'mode=0620'],
      },
    ],
    hooks,
    linux: {
      cgroupsPath: `/gantry-test/${id}`,
      namespaces: [
        { type: 'pid' },
        { type: 'mount' },
        { type: 'ipc' },
        { type: 'uts' },
        { type: 'network', ...(netns !== undefined && { path: netns }) },
      ],
      resources: memoryBytes === undefined ? {} : { memory: { limit: memoryBytes } },
    },
  };
}
