/**
 * `./gantry bench users [ROUNDS]`: containers with `--userns-remap`, beside dockerd with it and beside our daemon without; the
 * engine of an ordinary user, beside podman's.
 */
import { randomFillSync } from 'node:crypto';

import type { Api } from '@gantry/testing/api.ts';
import { TarWriter } from '@gantry/testing/archives/tar-writer.ts';
import { busyboxArchive, busyboxLayer, imageArchive } from '@gantry/testing/busybox-image.ts';
import { Dockerd } from '@gantry/testing/dockerd.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

import { Figures } from './beside-podman.ts';
import { benchRootless } from './rootless.ts';

const REMAP = '--userns-remap=default';
const RUN = 'create, start, wait and remove';
const LOAD = 'load of 200 MB';
const FIRST_START = 'first start of its image';
const BUDGETS: Readonly<Record<string, number>> = { [RUN]: 0.5, [LOAD]: 1, [FIRST_START]: 0.5 };
/** With a map beside without. */
const MAP_BUDGET = 1.1;
const FILES = 200;
const FILE_BYTES = 1024 * 1024;

export async function main(rounds = '10'): Promise<void> {
  await using ours = await TestEngine.start({ flags: [REMAP] });
  await using plain = await TestEngine.start();
  await using dockerd = await Dockerd.start([REMAP]);
  await dockerd.api.post('/images/load?quiet=1', await busyboxArchive());
  const [beside, without] = [new Figures(), new Figures()];
  for (let round = -1; round < Number(rounds); round += 1) {
    for (const [name, api] of [
      ['gantry', ours],
      ['dockerd', dockerd.api],
    ] as const) {
      await beside.time(round, RUN, name, async () => await runTrue(api, 'busybox'));
    }
    for (const [name, api] of [
      ['with a map', ours],
      ['without', plain],
    ] as const) {
      await without.time(round, RUN, name, async () => await runTrue(api, 'busybox'));
    }
  }
  for (let round = 0; round < Math.ceil(Number(rounds) / 5); round += 1) {
    const image = `bench/large:${round}`;
    const archive = imageArchive([busyboxLayer(), largeLayer()], [image]);
    for (const [name, api] of [
      ['gantry', ours],
      ['dockerd', dockerd.api],
    ] as const) {
      await beside.time(round, LOAD, name, async () => await load(api, archive));
      await beside.time(round, FIRST_START, name, async () => await runTrue(api, image));
    }
  }
  console.log(beside.table((work) => BUDGETS[work] ?? 1));
  console.log(without.table(() => MAP_BUDGET));
  console.log(await benchRootless(Number(rounds)));
}

async function load(api: Api, archive: Buffer): Promise<void> {
  const { status, raw } = await api.post('/images/load?quiet=1', archive);
  if (status !== 200 || !raw.includes('Loaded image')) throw new Error(`load answered ${status}: ${raw.toString()}`);
}

async function runTrue(api: Api, image: string): Promise<void> {
  const { status, body } = await api.post<{ Id: string }>('/containers/create', { Image: image, Cmd: ['true'] });
  if (status !== 201) throw new Error(`create answered ${status}`);
  for (const step of ['start', 'wait']) {
    const answer = await api.post(`/containers/${body.Id}/${step}`);
    if (answer.status >= 300) throw new Error(`${step} answered ${answer.status}: ${answer.raw.toString()}`);
  }
  await api.delete(`/containers/${body.Id}`);
}

function largeLayer(): Buffer {
  const tar = new TarWriter();
  for (let file = 0; file < FILES; file += 1) {
    tar.add({ name: `large/${file}`, content: randomFillSync(Buffer.alloc(FILE_BYTES)), uid: file });
  }
  return tar.end();
}
