/** `./gantry bench builds [ROUNDS]`: builds beside dockerd and podman. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import type { Api } from '@gantry/testing/api.ts';
import { busyboxArchive } from '@gantry/testing/busybox-image.ts';
import { Dockerd, unmountBelow } from '@gantry/testing/dockerd.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

import { Figures, podmanIn } from '../beside-podman.ts';
import { largeContext, smallContext, STEPS } from './builds.ts';

const TAR = { headers: { 'Content-Type': 'application/x-tar' } };
const EIGHT = 'build of 8 steps';
const BUDGETS: Readonly<Record<string, number>> = { [EIGHT]: 1 / 3 };
const CACHED_BUDGET = 1 / 2;

/** A context as an archive for a daemon, and as a folder for podman. */
type Context = { tar: Buffer; folder: string };
type Builder = { name: string; build: (context: Context, isCached: boolean) => Promise<void> };

export async function main(rounds = '5'): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'gantry-bench-builds-'));
  await using ours = await TestEngine.start({ image: true, flags: ['--bridge=none'] });
  const netns = join(ours.directory, 'netns');
  await using dockerd = await Dockerd.start(['--bridge=none', '--iptables=false'], netns);
  try {
    const archive = await busyboxArchive();
    await dockerd.api.post('/images/load?quiet=1', archive);
    const podman = podmanIn(folder, netns);
    writeFileSync(join(folder, 'busybox.tar'), archive);
    await podman('load', '-q', '-i', join(folder, 'busybox.tar'));
    const builders = [byApi('gantry', ours), byApi('dockerd', dockerd.api), byPodman(podman)];
    const small = contextIn(join(folder, 'small'), smallContext);
    const large = contextIn(join(folder, 'large'), largeContext());
    const figures = new Figures();
    for (let round = -1; round < Number(rounds); round += 1) {
      for (const { name, build } of builders) {
        await figures.time(round, EIGHT, name, async () => await build(small, false));
        await figures.time(round, `${EIGHT}, cached`, name, async () => await build(small, true));
        const forty = `build of ${STEPS} steps, cached, 200 MB sent`;
        await figures.time(round, forty, name, async () => await build(large, true));
      }
    }
    console.log(figures.table((work) => BUDGETS[work] ?? CACHED_BUDGET));
  } finally {
    await unmountBelow(folder); // podman leaves its storage mounted
    rmSync(folder, { recursive: true, force: true });
  }
}

function contextIn(folder: string, tar: Buffer): Context {
  mkdirSync(folder);
  execFileSync('tar', ['-xf', '-', '-C', folder], { input: tar });
  return { tar, folder };
}

function byApi(name: string, api: Api): Builder {
  const build = async ({ tar }: Context, isCached: boolean): Promise<void> => {
    const { status, raw } = await api.post(
      `/build?t=bench/build&networkmode=host&nocache=${isCached ? 0 : 1}`,
      tar,
      TAR,
    );
    if (status !== 200 || !raw.includes('Successfully tagged')) throw new Error(raw.toString().slice(-500));
  };
  return { name, build };
}

/** As people call it: its own storage of layers as a cache, and the context where it lies. */
function byPodman(run: (...words: string[]) => Promise<void>): Builder {
  const build = async ({ folder }: Context, isCached: boolean): Promise<void> => {
    const words = ['build', '-q', '--layers', '--network=host', '-t', 'bench/build', '-f', join(folder, 'Dockerfile')];
    await run(...words, ...(isCached ? [] : ['--no-cache']), folder);
  };
  return { name: 'podman', build };
}
