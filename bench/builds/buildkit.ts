/**
 * `./gantry bench buildkit [ROUNDS]`: builds by docker's command line with buildx, beside the BuildKit of dockerd; `GANTRY_JUDGE`
 * names the folder of a newer one.
 */
import { execFile } from 'node:child_process';
import { randomFillSync } from 'node:crypto';
import { appendFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

import { busyboxArchive } from '@gantry/testing/busybox-image.ts';
import { fetchNewerClients, newerClients } from '@gantry/testing/clients/newer-clients.ts';
import { Dockerd } from '@gantry/testing/dockerd.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

import { Figures } from '../beside-podman.ts';
import { EIGHT_STEPS } from './builds.ts';

const execute = promisify(execFile);
const EIGHT = 'docker build of 8 steps';
const LARGE = { files: 10_000, bytes: 20_000, folders: 100 };
const UNCACHED_BUDGET = 1 / 3;
const CACHED_BUDGET = 1 / 2;

type Build = (folder: string, ...flags: readonly string[]) => Promise<void>;

export async function main(rounds = '5'): Promise<void> {
  fetchNewerClients();
  const folder = mkdtempSync(join(tmpdir(), 'gantry-bench-buildkit-'));
  await using ours = await TestEngine.start({ image: true, flags: ['--bridge=none'] });
  await using dockerd = await Dockerd.start(['--bridge=none', '--iptables=false'], join(ours.directory, 'netns'));
  try {
    await dockerd.api.post('/images/load?quiet=1', await busyboxArchive());
    const [small, large] = [smallFolder(folder), largeFolder(folder)];
    const builders = [builderOf(folder, 'gantry', ours.socketPath), builderOf(folder, 'dockerd', dockerd.socketPath)];
    const figures = new Figures();
    for (const { build } of builders) await build(large);
    for (let round = -1; round < Number(rounds); round += 1) {
      for (const { name, build } of builders) {
        await figures.time(round, EIGHT, name, async () => await build(small, '--no-cache'));
        await figures.time(round, `${EIGHT}, cached`, name, async () => await build(small));
        await figures.time(round, 'unchanged context of 200 MB, 10,000 files', name, async () => await build(large));
      }
      appendFileSync(join(large, 'folder-7/changed'), 'x');
      for (const { name, build } of builders)
        await figures.time(round, 'one changed file of these', name, async () => await build(large));
    }
    console.log(figures.table((work) => (work === EIGHT ? UNCACHED_BUDGET : CACHED_BUDGET)));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function builderOf(folder: string, name: string, socketPath: string): { name: string; build: Build } {
  const { docker, plugins } = newerClients()!;
  const config = join(folder, `config-${name}`); // with a state of buildx of its own
  mkdirSync(config);
  writeFileSync(join(config, 'config.json'), JSON.stringify({ auths: {}, cliPluginsExtraDirs: [plugins] }));
  const env = { ...process.env, DOCKER_CONFIG: config };
  const build: Build = async (context, ...flags) => {
    const words = ['-H', `unix://${socketPath}`, 'build', '--network=host', '-q', '-t', 'bench', ...flags, context];
    await execute(docker, words, { env, maxBuffer: 2 ** 24 });
  };
  return { name, build };
}

function smallFolder(above: string): string {
  const folder = join(above, 'small');
  mkdirSync(folder);
  for (const [name, content] of [
    ['Dockerfile', EIGHT_STEPS],
    ['a', 'a\n'],
    ['b', 'b\n'],
  ] as const)
    writeFileSync(join(folder, name), content);
  return folder;
}

function largeFolder(above: string): string {
  const folder = join(above, 'large');
  const noise = randomFillSync(Buffer.alloc(LARGE.bytes));
  for (let at = 0; at < LARGE.files; at += 1) {
    const path = join(folder, `folder-${at % LARGE.folders}`);
    mkdirSync(path, { recursive: true });
    noise.writeUInt32LE(at);
    writeFileSync(join(path, String(at)), noise);
  }
  writeFileSync(join(folder, 'Dockerfile'), 'FROM busybox\nCOPY . /all\n');
  return folder;
}
