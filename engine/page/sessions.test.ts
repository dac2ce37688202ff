import assert from 'node:assert/strict';
import { mkdtempDisposableSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';

import { systemClock } from '../lib/clock.ts';
import { PageSessions } from './sessions.ts';

/** Sessions at a time that the test moves. */
function sessionsIn(folder: string): { sessions: PageSessions; pass: (seconds: number) => void } {
  let now = Temporal.Instant.from('2026-01-01T00:00:00Z');
  const sessions = new PageSessions({ ...systemClock, now: () => now }, folder);
  return { sessions, pass: (seconds) => void (now = now.add({ seconds })) };
}

function folderOf(): ReturnType<typeof mkdtempDisposableSync> {
  return mkdtempDisposableSync(join(tmpdir(), 'gantry-page-'));
}

test('a token opens one session, and none after five minutes', () => {
  using folder = folderOf();
  const { sessions, pass } = sessionsIn(folder.path);
  const [used, old] = [sessions.token(false), sessions.token(false)];

  assert.notEqual(sessions.open(used), undefined);
  assert.equal(sessions.open(used), undefined);
  pass(301);
  assert.equal(sessions.open(old), undefined);
});

test('a session is found by its own cookie, for a day, also by the next daemon', () => {
  using folder = folderOf();
  const { sessions, pass } = sessionsIn(folder.path);
  sessions.servedAt({ host: '127.0.0.1', port: 4000 });
  const { session, cookie } = sessions.open(sessions.token(true))!;

  assert.equal(sessions.find(session.id, 'other'), undefined);
  const next = sessionsIn(folder.path);
  assert.equal(next.sessions.find(session.id, cookie)?.readOnly, true);
  assert.deepEqual(next.sessions.lastAddress, { host: '127.0.0.1', port: 4000 });
  assert.ok(!readFileSync(join(folder.path, 'page.json'), 'utf8').includes(cookie));
  pass(24 * 3600);
  assert.equal(sessions.find(session.id, cookie), undefined);
});

for (const text of [
  '',
  'null',
  '{',
  '[]',
  '{"host":"127.0.0.1","port":1,"sessions":[{"id":"x","digest":"y","readOnly":true,"until":"never"}]}',
]) {
  test(`a damaged file of sessions has none: ${text}`, () => {
    using folder = folderOf();
    writeFileSync(join(folder.path, 'page.json'), text);

    const { sessions } = sessionsIn(folder.path);

    assert.equal(sessions.lastAddress, undefined);
    assert.notEqual(sessions.open(sessions.token(false)), undefined);
  });
}
