import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { newId } from '../lib/ids.ts';
import { Shim, type ShimOptions } from './shim.ts';

type Wanted = Partial<Pick<ShimOptions, 'tty' | 'openStdin' | 'stdinOnce'>> & {
  log?: { driver: 'json-file'; maxBytes?: number; maxFiles?: number } | { driver: 'none' };
  memoryBytes?: number;
};

/** A place for shims over a busybox root: what the daemon does around them, with nothing of the daemon. */
export class TestBundle implements AsyncDisposable {
  readonly directory = mkdtempSync(join(tmpdir(), 'gantry-shim-'));
  readonly id = newId();
  readonly logPath = join(this.directory, 'log.json');
  readonly #shims: Shim[] = [];

  /** Spawns a shim for this command; it has not started yet. */
  async shim(args: readonly string[], wanted: Wanted = {}): Promise<Shim> {
    const folder = join(this.directory, 'bundle');
    mkdirSync(folder, { recursive: true });
    this.#makeRoot(join(folder, 'rootfs'));
    writeFileSync(join(folder, 'config.json'), JSON.stringify(config(this.id, args, wanted)));
    const log = wanted.log ?? { driver: 'json-file' as const };
    const shim = await Shim.spawn({
      id: this.id,
      directory: folder,
      runtime: { path: 'runc', root: join(this.directory, 'state') },
      mode: { kind: 'container' },
      tty: wanted.tty ?? false,
      openStdin: wanted.openStdin ?? false,
      stdinOnce: wanted.stdinOnce ?? false,
      log: log.driver === 'none' ? log : { ...log, path: this.logPath },
      cgroupPath: `/gantry-test/${this.id}`,
    });
    this.#shims.push(shim);
    return shim;
  }

  /** A process in the running container. */
  async exec(args: readonly string[], wanted: Wanted = {}): Promise<Shim> {
    const id = newId();
    const folder = join(this.directory, id);
    mkdirSync(folder);
    writeFileSync(join(folder, 'process.json'), JSON.stringify(processOf(args, wanted.tty ?? false)));
    const shim = await Shim.spawn({
      id,
      directory: folder,
      runtime: { path: 'runc', root: join(this.directory, 'state') },
      mode: { kind: 'exec', container: this.id },
      tty: wanted.tty ?? false,
      openStdin: wanted.openStdin ?? false,
      stdinOnce: true,
      log: { driver: 'none' },
    });
    this.#shims.push(shim);
    return shim;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const shim of this.#shims.toReversed()) {
      await shim.signal(9).catch(() => undefined); // it may have ended
      shim.release();
      // The runtime's record of the container lies in our folder: it has to be done before the folder goes.
      if (shim.phase !== 'waiting' && shim.directory.endsWith('bundle')) await shim.gone;
      await shim.abandon();
    }
    // A shim that was killed has left its container to whoever finds it.
    execFileSync('runc', ['--root', join(this.directory, 'state'), 'delete', '--force', this.id], { stdio: 'ignore' });
    rmSync(this.directory, { recursive: true, force: true });
  }

  #makeRoot(root: string): void {
    mkdirSync(join(root, 'bin'), { recursive: true });
    for (const folder of ['proc', 'dev', 'tmp', 'sys']) mkdirSync(join(root, folder), { recursive: true });
    copyFileSync('/bin/busybox', join(root, 'bin/busybox'));
    for (const name of ['sh', 'cat', 'true', 'sleep', 'seq', 'dd', 'stty', 'head', 'kill', 'tail']) {
      rmSync(join(root, 'bin', name), { force: true });
      symlinkSync('busybox', join(root, 'bin', name));
    }
    writeFileSync(join(root, 'noexec'), 'no program', { mode: 0o644 });
  }
}

function processOf(args: readonly string[], terminal: boolean): object {
  return { terminal, args, cwd: '/', env: ['PATH=/bin'], user: { uid: 0, gid: 0 } };
}

function config(id: string, args: readonly string[], { tty = false, memoryBytes }: Wanted): object {
  return {
    ociVersion: '1.0.2',
    process: processOf(args, tty),
    root: { path: 'rootfs' },
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
    linux: {
      cgroupsPath: `/gantry-test/${id}`,
      namespaces: [{ type: 'pid' }, { type: 'mount' }, { type: 'ipc' }, { type: 'uts' }, { type: 'network' }],
      resources: memoryBytes === undefined ? {} : { memory: { limit: memoryBytes } },
    },
  };
}
