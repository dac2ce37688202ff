import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';

import { Api } from '@gantry/testing/api.ts';
import { busyboxArchive } from '@gantry/testing/busybox-image.ts';
import { Dockerd, NEWER_JUDGE } from '@gantry/testing/dockerd.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

import { LATER_ROWS, makeTree, type LaterRow } from './later-fields.ts';
import { LATER_MOUNTS } from './later-mounts.ts';
import { LATER_OPERATIONS } from './later-operations.ts';

/** By hand the rows are sent to a newer dockerd as well: `GANTRY_JUDGE` (see testing/dockerd.ts). */
const NEWEST_OF_JUDGE = 51;

suite('fields of containers above version 1.41', () => {
  const parts = new AsyncDisposableStack();
  let ours: TestEngine;
  let theirs: Dockerd | undefined;
  before(async () => {
    ours = parts.use(await TestEngine.start({ version: '1.51', flags: ['--max-api-version=1.55'] }));
    parts.defer(makeTree(join(ours.directory, 'host')));
    if (NEWER_JUDGE === undefined) return;
    theirs = parts.use(await Dockerd.start());
    parts.defer(makeTree(join(theirs.directory, 'host')));
    await theirs.api.post('/images/load?quiet=1', await busyboxArchive());
  });
  after(async () => await parts.disposeAsync());

  for (const row of [...LATER_ROWS, ...LATER_OPERATIONS, ...LATER_MOUNTS]) {
    const remark = row.chosen === undefined ? 'as dockerd' : `unlike dockerd: ${row.chosen}`;
    test(`${row.title}: ${remark}`, async () => {
      assert.deepEqual(await outcomes(row, ours.socketPath, ours.directory), row.expected);
      if (theirs === undefined || row.chosen !== undefined) return;
      const { socketPath, directory } = theirs;
      const told = await outcomes(row, socketPath, directory);
      const known = Object.entries(row.expected).filter(([version]) => Number(version.slice(2)) <= NEWEST_OF_JUDGE);
      assert.deepEqual(told, Object.fromEntries(known));
    });
  }
});

/** By version; those that the engine does not serve are left out. */
async function outcomes(row: LaterRow, socketPath: string, directory: string): Promise<Record<string, unknown>> {
  const found: Record<string, unknown> = {};
  for (const version of Object.keys(row.expected)) {
    using api = new Api(socketPath, `/v${version}`);
    if ((await api.get('/_ping')).status !== 200) continue;
    found[version] = await row.work({ api, host: join(directory, 'host'), version });
  }
  return found;
}
