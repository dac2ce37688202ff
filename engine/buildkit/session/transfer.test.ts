import assert from 'node:assert/strict';
import { mkdtempDisposableSync, openSync, closeSync, rmSync, statSync, writeFileSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import { KeptContexts } from '../../builder/context/kept-contexts.ts';
import { Stat } from '../messages/file-sync.ts';
import { archiveOf } from './context-archive.ts';
import type { SyncedFile } from './file-sync.ts';
import { StatList } from './stat-list.ts';
import { Transfer } from './transfer.ts';

const FILES = 2000;
/** Files that change before each build. */
const CHANGED = 500;

test('an archive that is continued again and again stays below twice its files', async () => {
  using place = mkdtempDisposableSync(join(tmpdir(), 'gantry-transfer-'));
  const log = { warn: (details: object, message: string) => assert.fail(`${message} ${JSON.stringify(details)}`) };
  const current = { dataRoot: place.path, buildCacheBytes: 2 ** 30 };
  await using contexts = new KeptContexts({ live: { current }, log });
  const own = { archive: join(place.path, 'archive'), entries: join(place.path, 'entries') };
  const sizes: number[] = [];
  const continued: boolean[] = [];
  for (let round = 0; round < 12; round += 1) {
    for (const path of Object.values(own)) rmSync(path, { force: true });
    await using kept = await contexts.open('key');
    const transfer = new Transfer(kept, own);
    const stats = statsOf(round);
    await transfer.begin(stats);
    continued.push(transfer.takesOver === 'equal');
    if (transfer.takesOver === 'nothing') for (const path of Object.values(own)) writeFileSync(path, '');
    const fd = openSync(own.archive, 'r+');
    let end = transfer.behind;
    for await (const chunk of archiveOf(sentFiles(stats, transfer), transfer))
      end += writeSync(fd, chunk, 0, chunk.length, end);
    closeSync(fd);
    await contexts.keep('key', own, transfer.index());
    sizes.push(statSync(own.archive).size);
  }
  assert.ok(continued.includes(true));
  assert.ok(Math.max(...sizes) < 2 * sizes[0]!, sizes.join(' '));
});

/** Small files, each of whose names takes a header of its own. */
function statsOf(round: number): StatList {
  const stats = new StatList();
  for (let at = 0; at < FILES; at += 1) {
    const modified = BigInt(at < CHANGED ? round + 1 : 1) * 1_000_000_000n;
    stats.add(Stat.encode({ path: `é${String(at).padStart(4, '0')}`, mode: 0o644, size: 1, modified }));
  }
  return stats;
}

async function* sentFiles(stats: StatList, transfer: Transfer): AsyncGenerator<SyncedFile> {
  for (let id = 0; id < stats.length; id += 1) {
    if (transfer.isTakenOver(id)) continue;
    const content = transfer.isKnown(id) ? transfer.read(id) : oneByte();
    yield { id, stat: stats.at(id), content };
  }
}

async function* oneByte(): AsyncGenerator<Uint8Array> {
  yield Buffer.from('x');
}
