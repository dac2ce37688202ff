import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFile, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { median } from './measure.ts';

/** Milliseconds of a bare `runc run` and `runc delete` of `true`: the lower bound of an engine on runc. */
export async function runtimeFloor(rounds = 15): Promise<number> {
  const directory = await mkdtemp(join(tmpdir(), 'gantry-floor-'));
  try {
    await mkdir(join(directory, 'rootfs/bin'), { recursive: true });
    await copyFile('/bin/busybox', join(directory, 'rootfs/bin/busybox'));
    await symlink('busybox', join(directory, 'rootfs/bin/true'));
    await runc(directory, ['spec']);
    const { default: config } = (await import(join(directory, 'config.json'), { with: { type: 'json' } })) as {
      default: { process: { terminal: boolean; args: string[] } };
    };
    config.process.terminal = false;
    config.process.args = ['true'];
    await writeFile(join(directory, 'config.json'), JSON.stringify(config));
    const figures = [];
    for (let round = 0; round < rounds; round += 1) {
      const started = performance.now();
      await runc(directory, ['--root', join(directory, 'state'), 'run', '--keep', `floor-${process.pid}`]);
      await runc(directory, ['--root', join(directory, 'state'), 'delete', `floor-${process.pid}`]);
      figures.push(performance.now() - started);
    }
    return median(figures);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

async function runc(cwd: string, command: string[]): Promise<void> {
  const child = spawn('runc', command, { cwd, stdio: ['ignore', 'ignore', 'inherit'] });
  const [code] = (await once(child, 'exit')) as [number];
  if (code !== 0) throw new Error(`runc ${command.join(' ')} ended with ${code}`);
}
