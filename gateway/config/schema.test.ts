import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import { readConfig } from './read.ts';

test('what is listed by id may leave out whatever has a default', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'gantry-schema-'));
  await using undo = new AsyncDisposableStack();
  undo.defer(async () => await rm(folder, { recursive: true }));
  const file = join(folder, 'gateway.yaml');
  await writeFile(
    file,
    `upstream: http://127.0.0.1:3000
identities:
  users: { ada: {} }
  orgs: { engines: {} }
  apps: { ci: { kind: platform } }
  installations: { '7': {} }
  repositories: { '9': {} }
`,
  );

  const { identities } = readConfig(file);

  assert.deepEqual(identities.users, { ada: { orgs: [] } });
  assert.deepEqual(identities.orgs, { engines: { enterprise: false, hosted: false } });
  assert.deepEqual(identities.apps, { ci: { kind: 'platform', approvedBy: [] } });
  assert.deepEqual(identities.installations, { '7': { repositories: 0 } });
  assert.deepEqual(identities.repositories, { '9': {} });
});
