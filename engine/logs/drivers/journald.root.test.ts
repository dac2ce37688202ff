import assert from 'node:assert/strict';
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';

import type { Api } from '@gantry/testing/api.ts';
import { busyboxArchive } from '@gantry/testing/busybox-image.ts';
import { Dockerd } from '@gantry/testing/dockerd.ts';
import { NO_NETWORK, NO_NETWORK_DOCKERD, OWN_NETNS } from '@gantry/testing/receivers/log-receivers.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

const execute = promisify(execFile);

/** A journal of its own: nothing of it is seen outside of its mount namespace. */
const JOURNAL = `
  mount --make-rprivate /
  mount -t tmpfs tmpfs /run
  mkdir -p /run/log/journal /run/systemd/journal
  if [ ! -s /etc/machine-id ]; then
    echo 0123456789abcdef0123456789abcdef >/run/machine-id
    [ -e /etc/machine-id ] || touch /etc/machine-id
    mount --bind /run/machine-id /etc/machine-id
  fi
  exec /lib/systemd/systemd-journald`;

let journal: ChildProcess;
let engine: TestEngine;
let dockerd: Dockerd;

function inside(): string[] {
  return ['nsenter', `--mount=/proc/${journal.pid}/ns/mnt`];
}

before(async () => {
  journal = spawn('unshare', ['--mount', 'sh', '-c', JOURNAL], { stdio: 'ignore' });
  const socket = `/proc/${journal.pid}/root/run/systemd/journal/socket`;
  for (let tries = 0; tries < 600 && !existsSync(socket); tries += 1) {
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  engine = await TestEngine.start({ netns: OWN_NETNS, flags: NO_NETWORK, within: inside() });
  dockerd = await Dockerd.start(NO_NETWORK_DOCKERD, OWN_NETNS, inside());
  await dockerd.api.post('/images/load?quiet=1', await busyboxArchive());
});

after(async () => {
  await engine?.[Symbol.asyncDispose]();
  await dockerd?.[Symbol.asyncDispose]();
  const ended = once(journal, 'exit');
  journal.kill();
  await ended;
});

type Entry = Record<string, unknown>;

const LINES = 9;
const SCRIPT = String.raw`echo one; echo; echo 'two é' >&2; echo '{"a": 1}'; printf 'a\377b\n'; head -c 40000 /dev/zero | tr '\0' l; echo; printf end`;

/** Entries of a container in the journal, once all of them are there. */
async function entriesOf(id: string): Promise<Entry[]> {
  const [enter = '', ...words] = inside();
  const command = [
    'journalctl',
    '-D',
    '/run/log/journal',
    '-o',
    'json',
    '--all',
    '--no-pager',
    `CONTAINER_ID_FULL=${id}`,
  ];
  for (let tries = 0; tries < 600; tries += 1) {
    const { stdout } = await execute(enter, [...words, ...command], { maxBuffer: 64 * 1024 * 1024 });
    const entries = stdout.split('\n').filter((line) => line.startsWith('{'));
    if (entries.length >= LINES) return entries.map((line) => JSON.parse(line) as Entry);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error('the journal does not get the lines');
}

/** Without what the journal adds, and with the same text for what differs between two runs. */
function comparable(entries: Entry[], id: string): string[] {
  return entries
    .map((entry) => {
      const fields = Object.entries(entry).filter(([name]) => !name.startsWith('_') && name !== 'SYSLOG_TIMESTAMP');
      const sorted = JSON.stringify(Object.fromEntries(fields.toSorted(([a], [b]) => (a < b ? -1 : 1))));
      return sorted
        .replaceAll(id, '<id>')
        .replaceAll(id.slice(0, 12), '<short id>')
        .replaceAll(/"CONTAINER_PARTIAL_ID":"[0-9a-f]{64}"/g, '"CONTAINER_PARTIAL_ID":"<id>"')
        .replaceAll(/l{100,}/g, (long) => `<${long.length} l>`);
    })
    .toSorted();
}

async function ran(api: Pick<Api, 'post' | 'delete'>, Config: Record<string, string>): Promise<[Entry[], string]> {
  const answer = await api.post<{ Id: string }>('/containers/create?name=journal', {
    Image: 'busybox',
    Cmd: ['sh', '-c', SCRIPT],
    Labels: { 'com.example/who': 'two\nlines' },
    Env: ['_COLOR=red', '9LIVES=x'],
    HostConfig: { NetworkMode: 'none', LogConfig: { Type: 'journald', Config } },
  });
  const { Id: id } = answer.body;
  const started = await api.post(`/containers/${id}/start`);
  assert.equal(started.status, 204, JSON.stringify(started.body));
  const entries = await entriesOf(id);
  await api.delete(`/containers/${id}?force=1`);
  return [entries, id];
}

for (const options of [
  {},
  { tag: '{{.Name}}/{{.ImageName}}', labels: 'com.example/who', 'env-regex': 'COLOR|LIVES' },
]) {
  test(`the journal gets the fields that dockerd gives: ${JSON.stringify(options)}`, async () => {
    const theirs = comparable(...(await ran(dockerd.api, options as Record<string, string>)));
    const [entries, id] = await ran(engine, options as Record<string, string>);

    assert.deepEqual(comparable(entries, id), theirs);
    const times = entries.map((entry) => String(entry['SYSLOG_TIMESTAMP']));
    assert.ok(
      times.every((time) => /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/.test(time)),
      times.join(),
    );
  });
}
