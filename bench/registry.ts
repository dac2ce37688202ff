/** `./gantry bench registry [ROUNDS]`: pull, push, load and save of an image of 12 layers, beside dockerd and podman. */
import { execFileSync } from 'node:child_process';
import {
  createReadStream,
  createWriteStream,
  globSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  lstatSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';

import type { Api } from '@gantry/testing/api.ts';
import { imageArchive } from '@gantry/testing/busybox-image.ts';
import { Dockerd, unmountBelow } from '@gantry/testing/dockerd.ts';
import { Registries } from '@gantry/testing/registries/registries.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

import { Figures, podmanIn } from './beside-podman.ts';

const REGISTRY = '127.0.0.1:5000';
const NAME = `${REGISTRY}/bench/image:1`;
const LAYERS = 12;
const LAYER_BYTES = 10_000_000;
/** Ratio of our median time to that of the faster peer. */
const BUDGET = 2 / 3;
const MEMORY_BUDGET_MB = 150;

type Engine = {
  name: string;
  pull: () => Promise<void>;
  push: () => Promise<void>;
  load: () => Promise<void>;
  save: () => Promise<void>;
  remove: () => Promise<void>;
};

export async function main(rounds = '5'): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'gantry-bench-registry-'));
  await using ours = await TestEngine.start({ image: false, flags: ['--bridge=none'] });
  const netns = join(ours.directory, 'netns');
  await using dockerd = await Dockerd.start(['--bridge=none', '--iptables=false'], netns);
  await using registries = await Registries.start(netns);
  try {
    await registries.registry(5000);
    const archive = join(folder, 'image.tar');
    makeImage(archive, LAYERS);
    const place = { archive, saved: join(folder, 'saved.tar') };
    const engines = [
      byApi('gantry', ours, place),
      byApi('dockerd', dockerd.api, place),
      podman(podmanIn(folder, netns), place),
    ];
    const figures = await compareAll(engines, Number(rounds), async () => await registries.wipe(5000));
    console.log(figures.table(() => BUDGET));
    await memory(engines[0]!, ours.pid, folder, registries);
  } finally {
    await unmountBelow(folder); // podman leaves its storage mounted
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Programs and their data, as images have them. */
function makeImage(file: string, layers: number): void {
  const files = globSync('/usr/{bin,lib,share}/**/*')
    .filter((path) => lstatSync(path, { throwIfNoEntry: false })?.isFile() === true)
    .toSorted();
  const tars: Buffer[] = [];
  let at = 0;
  for (let layer = 0; layer < layers; layer += 1) {
    const chosen = [];
    for (let bytes = 0; bytes < LAYER_BYTES; at += 1) {
      const path = files[at % files.length]!;
      const { size } = lstatSync(path);
      if (size > LAYER_BYTES / 4) continue;
      chosen.push(path.slice(1));
      bytes += size;
    }
    const list = ['-c', '--no-recursion', '--mtime=@0', `--transform=s,^,layer-${layer}/,`, '-C', '/', '-T', '-'];
    tars.push(
      execFileSync('tar', list, { input: chosen.join('\n'), maxBuffer: 2 ** 30, stdio: ['pipe', 'pipe', 'ignore'] }),
    );
  }
  writeFileSync(file, imageArchive(tars, [NAME]));
}

type Place = { archive: string; saved: string };

function byApi(name: string, api: Api, { archive, saved }: Place): Engine {
  const follow = async (path: string, options = {}): Promise<void> => {
    let text = '';
    for await (const chunk of (await api.stream('POST', path, options)) as AsyncIterable<Buffer>)
      text += chunk.toString();
    if (/"error"/.test(text)) throw new Error(`${name}: ${text.slice(-500)}`);
  };
  const headers = { 'X-Registry-Auth': Buffer.from('{}').toString('base64') };
  return {
    name,
    pull: async () => await follow(`/images/create?fromImage=${NAME}`),
    push: async () => await follow(`/images/${NAME}/push`, { headers }),
    load: async () => await follow('/images/load?quiet=1', { body: createReadStream(archive) }),
    save: async () => await pipeline(await api.stream('GET', `/images/${NAME}/get`), createWriteStream(saved)),
    remove: async () => {
      const { status, raw } = await api.delete(`/images/${NAME}?force=1`);
      if (status !== 200) throw new Error(`${name}: ${raw.toString()}`);
    },
  };
}

function podman(run: (...words: string[]) => Promise<void>, { archive, saved }: Place): Engine {
  return {
    name: 'podman',
    pull: async () => await run('pull', '-q', '--tls-verify=false', NAME),
    push: async () => await run('push', '-q', '--tls-verify=false', NAME),
    load: async () => await run('load', '-q', '-i', archive),
    save: async () => {
      rmSync(saved, { force: true });
      await run('save', '-q', '-o', saved, NAME);
    },
    remove: async () => await run('rmi', '-f', NAME),
  };
}

/** Runs the same on each engine in turn, after one round that does not count. */
async function compareAll(engines: readonly Engine[], rounds: number, wipe: () => Promise<void>): Promise<Figures> {
  const figures = new Figures();
  for (let round = -1; round < rounds; round += 1) {
    for (const engine of engines) {
      for (const work of ['load', 'save', 'push', 'pull'] as const) {
        if (work === 'push') await wipe();
        if (work === 'pull') await engine.remove();
        await figures.time(round, `${work}, 12 layers, 120 MB`, engine.name, engine[work]);
      }
      await engine.remove();
    }
  }
  return figures;
}

/** The most that the daemon has while it loads, pushes and pulls an image, and one that is four times as large. */
async function memory(ours: Engine, pid: number, folder: string, registries: Registries): Promise<void> {
  for (const layers of [LAYERS, 4 * LAYERS]) {
    makeImage(join(folder, 'image.tar'), layers);
    const most: string[] = [];
    for (const work of ['load', 'push', 'pull'] as const) {
      if (work === 'push') await registries.wipe(5000);
      if (work === 'pull') await ours.remove();
      writeFileSync(`/proc/${pid}/clear_refs`, '5'); // the peak begins anew
      await ours[work]();
      const peak = Number(/^VmHWM:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) / 1024;
      most.push(`${work} ${peak.toFixed(0)} MB (${peak <= MEMORY_BUDGET_MB ? 'met' : 'NOT MET'})`);
    }
    await ours.remove();
    console.log(`the daemon's memory with ${layers} layers, at most ${MEMORY_BUDGET_MB} MB: ${most.join(', ')}`);
  }
}
