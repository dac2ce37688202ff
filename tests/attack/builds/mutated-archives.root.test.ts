import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { gzipSync, zstdCompressSync } from 'node:zlib';

import { TarWriter, type TarEntry } from '@gantry/testing/archives/tar-writer.ts';
import { imageArchive } from '@gantry/testing/busybox-image.ts';
import { internalWord } from '@gantry/testing/internal-words.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

import { Dice } from '../random.ts';
import { mutated } from '../requests.ts';

/** More by hand: `GANTRY_ARCHIVES=1000 ./gantry test tests/attack`. */
const ARCHIVES = Number(process.env.GANTRY_ARCHIVES ?? 300);
const SEED = Number(process.env.GANTRY_ATTACK_SEED ?? Date.now() % 1_000_000);
const CLIENTS = 4;
const RESIDENT_KB = 350 * 1024;

test(`${ARCHIVES} damaged archives are loaded or refused, and refused ones leave nothing`, async (t) => {
  t.diagnostic(`GANTRY_ATTACK_SEED=${SEED}`);
  await using engine = await TestEngine.start({ image: false });
  const counts: Record<string, number> = {};
  let sent = 0;

  await Promise.all(
    Array.from({ length: CLIENTS }, async (_, client) => {
      const dice = new Dice(SEED + client);
      while (sent < ARCHIVES) {
        sent += 1;
        const outcome = await load(engine, archiveOf(dice), dice);
        counts[outcome] = (counts[outcome] ?? 0) + 1;
      }
    }),
  );

  t.diagnostic(JSON.stringify(counts));
  assert.ok(counts.refused! > 0 && counts.loaded! > 0, 'the damage is neither too little nor too much');
  const errors = engine.log.split('\n').filter((line) => /"level":[56]0/.test(line));
  assert.deepEqual(errors, []);
  const { body: images } = await engine.get<{ Id: string }[]>('/images/json?all=1');
  for (const { Id } of images) assert.equal((await engine.delete(`/images/${Id}?force=1`)).status, 200);
  for (const folder of ['layers', 'blobs/sha256', 'blobs/skeletons', 'blobs/arriving']) {
    const names = readdirSync(join(engine.dataRoot, folder)).filter(
      (name) => !['.trash', 'common', 'init'].includes(name),
    );
    assert.deepEqual(names, [], `${folder} is empty without an image`);
  }
  // Memory is given back when the daemon has been quiet for a while.
  const deadline = performance.now() + 120_000;
  while (residentKb(engine) > RESIDENT_KB) {
    assert.ok(performance.now() < deadline, `${residentKb(engine)} KB are resident`);
    await setTimeout(500);
  }
});

function residentKb({ pid }: TestEngine): number {
  return Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);
}

async function load(engine: TestEngine, archive: Buffer, dice: Dice): Promise<string> {
  const path = dice.chance(0.7) ? '/images/load?quiet=1' : '/images/create?fromSrc=-&repo=mutated';
  const { status, raw } = await engine.post(path, archive);
  const text = raw.toString();
  if (status === 200) return text.includes('"error"') ? 'refused' : 'loaded';
  assert.equal(status, 400, text);
  assert.deepEqual(Object.keys(JSON.parse(text) as object), ['message']);
  assert.doesNotMatch(text, /undefined|\[object|Cannot read/);
  assert.equal(internalWord(text), undefined, text);
  return 'refused';
}

/** A small image with links, devices, whiteouts and long names, with the damage before or behind its compression. */
function archiveOf(dice: Dice): Buffer {
  const layers = Array.from({ length: 1 + dice.upTo(3) }, () => layerOf(dice));
  const compress = dice.pick([(bytes: Buffer) => bytes, gzipSync, zstdCompressSync]);
  // A layer that is damaged before its digest is taken reaches the extraction.
  const damaged = dice.chance(0.5) ? layers.map((layer) => mutated(layer, dice)) : layers;
  const archive = compress(imageArchive(damaged, [`mutated:${dice.upTo(5)}`]));
  return damaged === layers ? mutated(archive, dice) : archive;
}

function layerOf(dice: Dice): Buffer {
  const tar = new TarWriter();
  for (let count = 1 + dice.upTo(8); count > 0; count -= 1) tar.add(entryOf(dice));
  return dice.chance(0.9) ? tar.end() : tar.cut();
}

function entryOf(dice: Dice): TarEntry {
  const places = [
    'a',
    'a/b',
    'a/b/c',
    'link',
    'link/x',
    '.wh.a',
    'a/.wh..wh..opq',
    '../out',
    '/etc/passwd',
    'n'.repeat(250),
  ];
  const type = dice.pick(['file', 'link', 'symlink', 'charDevice', 'directory', 'fifo'] as const);
  return {
    name: dice.pick(places),
    type,
    mode: dice.pick([0o644, 0o4755, 0, 0o7777777]),
    uid: dice.pick([0, 1000, 2097151]),
    linkName: type === 'link' || type === 'symlink' ? dice.pick([...places, '', '/', '../../../..']) : '',
    content: type === 'file' ? 'x'.repeat(dice.upTo(2000)) : '',
    major: dice.pick([0, 1, 2097151]),
    ...(dice.chance(0.2) && {
      pax: {
        [dice.pick(['path', 'size', 'SCHILY.xattr.user.a', 'mtime', 'GNU.sparse.map'])]: dice.pick([
          '1',
          '-1',
          'x'.repeat(500),
          'a\0b',
          '',
        ]),
      },
    }),
  };
}
