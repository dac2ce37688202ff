import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';

import { TarWriter } from '@gantry/testing/archives/tar-writer.ts';
import { imageArchive } from '@gantry/testing/busybox-image.ts';
import { TestImages } from '@gantry/testing/test-images.ts';

import { SetAside } from '../trees/set-aside.ts';

const CONTAINER = 'ab'.repeat(32);
/** More than any of these takes; a process that ends by itself ends the search. */
const MAX_STEPS = 200;

const testing = join(import.meta.dirname, '../../testing');
const killer = pathToFileURL(join(testing, 'kill-at-step.ts')).href;

const commit = pathToFileURL(join(import.meta.dirname, 'commit.ts')).href;

const lower = new TarWriter().add({ name: 'one', content: '1' }).end();
const upper = new TarWriter().add({ name: 'two', content: '2' }).end();
const archive = imageArchive([lower, upper], ['a:1']);

/** Work on a data root that is cut off; `engine` is a `TestImages`. */
type Work = Readonly<{ before: (engine: TestImages) => Promise<void>; cut: string }>;

async function load(engine: TestImages): Promise<void> {
  await engine.load(archive);
}

async function loadAndPrepare(engine: TestImages): Promise<void> {
  await load(engine);
  await engine.layers.prepare(CONTAINER, engine.images.find('a:1').id);
}

const rows: Record<string, Work> = {
  'the removal of a container': {
    before: loadAndPrepare,
    cut: `await engine.layers.remove('${CONTAINER}')`,
  },
  'the removal of an image': {
    before: load,
    cut: `engine.images.delete(engine.images.find('a:1').id, () => {})`,
  },
  'the removal of a container whose image has gone': {
    before: async (engine) => {
      await loadAndPrepare(engine);
      engine.images.delete(engine.images.find('a:1').id, () => undefined);
    },
    cut: `await engine.layers.remove('${CONTAINER}')`,
  },
  'a step of a build that moves its writable layer': {
    before: loadAndPrepare,
    cut: `
      const { mkdirSync, writeFileSync } = await import('node:fs');
      const { commitLayer } = await import('${commit}');
      const { upper } = engine.layers.writable.places('${CONTAINER}');
      mkdirSync(upper + '/folder');
      writeFileSync(upper + '/folder/three', '3'.repeat(10_000));
      await commitLayer(engine, '${CONTAINER}', new DisposableStack(), 'none')`,
  },
  'a load': {
    before: async () => {},
    cut: `await engine.load(Buffer.from('${archive.toString('base64')}', 'base64'))`,
  },
};

for (const [what, { before, cut }] of Object.entries(rows)) {
  test(`${what} that SIGKILL cuts at any step leaves nothing to be set aside`, { timeout: 300_000 }, async () => {
    const folder = mkdtempSync(join(tmpdir(), 'gantry-cut-'));
    using _folder = { [Symbol.dispose]: () => rmSync(folder, { recursive: true }) };
    const whole = join(folder, 'whole');
    mkdirSync(whole);
    {
      await using engine = new TestImages({ directory: whole });
      await before(engine);
    }

    let steps = 0;
    for (let isCut = true; isCut;) {
      steps += 1;
      assert.ok(steps < MAX_STEPS);
      const directory = join(folder, String(steps));
      cpSync(whole, directory, { recursive: true });
      isCut = cutAt(steps, directory, cut);

      assert.deepEqual(await whatIsLeft(directory), { setAside: [], unowned: [] }, `cut before step ${steps}`);
    }
    assert.ok(steps > 2, `only ${steps} steps were seen`);
  });
}

/** Whether the work was cut off: false when it had fewer steps. */
function cutAt(step: number, directory: string, work: string): boolean {
  const program = `
    import { arm } from '${killer}';
    import { TestImages } from '${pathToFileURL(join(testing, 'test-images.ts')).href}';
    const engine = new TestImages({ directory: ${JSON.stringify(directory)} });
    arm();
    ${work};
    process.exit(0);`;
  const file = `${directory}.mjs`; // threads cannot be started from a program in the command line
  writeFileSync(file, program);
  const run = spawnSync(process.execPath, ['--import', killer, file], {
    env: { ...process.env, GANTRY_KILL_AT: String(step) },
    encoding: 'utf8',
    timeout: 120_000,
  });
  assert.ok(run.signal === 'SIGKILL' || run.status === 0, run.stderr);
  return run.signal === 'SIGKILL';
}

/** Folders that the next daemon sets aside, and files that no record needs then. */
async function whatIsLeft(directory: string): Promise<{ setAside: string[]; unowned: string[] }> {
  const setAside: string[] = [];
  const log = {
    warn: (details: object) => setAside.push(JSON.stringify(details)),
    error: (details: object) => setAside.push(JSON.stringify(details)),
  };
  await using engine = new TestImages({ directory });
  engine.layers.reconcile(new Set(), engine.images.ids(), new SetAside(directory, engine.clock.now(), log));
  await engine.layers.settled();
  const blobs = new Set(engine.layers.all().map(({ blob }) => blob.slice('sha256:'.length)));
  const folders = new Set(engine.layers.all().map((layer) => layer.folder));
  const unowned = [
    ...readdirSync(join(directory, 'writable')).filter((name) => name !== '.trash'),
    ...readdirSync(join(directory, 'writable/.trash')),
    ...readdirSync(join(directory, 'layers/.trash')),
    ...readdirSync(join(directory, 'layers')).filter((name) => !/^\.trash$|^common/.test(name) && !folders.has(name)),
    ...readdirSync(join(directory, 'blobs/sha256')).filter((name) => !blobs.has(name)),
  ];
  const owned = engine.images.all().flatMap(({ id }) => engine.layers.imageFolders(id));
  unowned.push(...[...folders].filter((folder) => !owned.includes(folder)));
  return { setAside, unowned };
}
