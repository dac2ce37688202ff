import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';

import type { Api } from '@gantry/testing/api.ts';
import { busyboxArchive, busyboxLayer, imageArchive } from '@gantry/testing/busybox-image.ts';
import { Dockerd } from '@gantry/testing/dockerd.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

import type { EventMessage } from '../../events/schema.ts';
import type { Inspect } from '../schema.ts';

const SECOND = 1e9;
/** Each check of dockerd's starts a runtime: more of them than are compared would cost the most here. */
const OFTEN = SECOND;
const LOOK_MS = 200;
const OF_IMAGE = { Test: ['CMD-SHELL', 'echo image'], Interval: OFTEN, Timeout: 5 * SECOND, Retries: 4 };

type Row = Readonly<{ name: string; check?: object | null; body?: object; image?: string; results?: number }>;

/** `results`: so many are waited for. */
const rows: readonly Row[] = [
  {
    name: 'the surroundings of the container',
    check: { Test: ['CMD-SHELL', 'id; pwd; env | sort'] },
    body: {
      User: '1:7',
      WorkingDir: '/tmp',
      Env: ['A=b c', 'HOME=/x'],
      Hostname: 'checked',
      HostConfig: { GroupAdd: ['wheel'] },
    },
  },
  { name: 'words without a shell', check: { Test: ['CMD', 'echo', '$HOME', 'b c'] } },
  { name: 'words after the one of the shell', check: { Test: ['CMD-SHELL', 'echo $0', 'zero'] } },
  { name: 'a failure', check: { Test: ['CMD-SHELL', 'echo no; exit 3'], Retries: 2 }, results: 2 },
  { name: 'no such command', check: { Test: ['CMD', 'nope', 'a'], Retries: 2 }, results: 2 },
  { name: 'a command that cannot be run', check: { Test: ['CMD', '/etc/passwd'], Retries: 2 }, results: 2 },
  { name: 'a shell without a command', check: { Test: ['CMD-SHELL'], Retries: 2 }, results: 2 },
  {
    name: 'a failure in the start period',
    check: { Test: ['CMD', 'false'], Retries: 1, StartPeriod: 900 * SECOND },
    results: 2,
  },
  { name: 'a signal', check: { Test: ['CMD-SHELL', 'kill -9 $$'], Retries: 1 } },
  { name: 'much output', check: { Test: ['CMD-SHELL', 'yes 0123456789 | head -c 5000'] } },
  { name: 'output that is no text', check: { Test: ['CMD', 'printf', '\\377ok\\n\\000'] } },
  { name: 'no test', check: { Interval: OFTEN } },
  { name: 'an empty check', check: {} },
  { name: 'no check', check: null },
  { name: 'none', check: { Test: ['NONE'] } },
  { name: 'an unknown kind', check: { Test: ['FOO', 'true'] } },
  { name: 'the check of the image', image: 'checked' },
  { name: 'the check of the image, with another interval', image: 'checked', check: { Interval: OFTEN + 1, Test: [] } },
  {
    name: 'another check than the one of the image',
    image: 'checked',
    check: { Test: ['CMD', 'echo', 'own'], Retries: 9 },
  },
  { name: 'none instead of the one of the image', image: 'checked', check: { Test: ['NONE'] } },
  { name: 'an interval below 1 ms', check: { Interval: 1 } },
  { name: 'a negative interval', check: { Interval: -1 } },
  { name: 'a timeout below 1 ms', check: { Timeout: 999_999 } },
  { name: 'a start period below 1 ms', check: { StartPeriod: 5 } },
  { name: 'fewer than no retries', check: { Retries: -1 } },
];

suite('health checks are as those of dockerd', { concurrency: 8 }, () => {
  let ours: TestEngine;
  let dockerd: Dockerd;
  before(async () => {
    [ours, dockerd] = await Promise.all([TestEngine.start({ image: false }), Dockerd.start()]);
    const image = imageArchive(busyboxLayer(), ['checked:latest'], { Healthcheck: OF_IMAGE });
    for (const api of [ours, dockerd.api]) {
      await api.post('/images/load?quiet=1', await busyboxArchive());
      await api.post('/images/load?quiet=1', image);
    }
  });
  after(async () => {
    await dockerd[Symbol.asyncDispose]();
    await ours[Symbol.asyncDispose]();
  });

  for (const row of rows) {
    test(row.name, async () => {
      const [own, theirs] = await Promise.all([answerOf(ours, row), answerOf(dockerd.api, row)]);

      assert.deepEqual(own, theirs);
    });
  }
});

/** Health of a container, as clients see it. */
async function answerOf(api: Api, { check, body = {}, image = 'busybox', results = 1 }: Row): Promise<unknown> {
  const isRun = (check as { Test?: string[] } | undefined)?.Test?.[0]?.startsWith('CMD') === true;
  const Healthcheck = isRun && image === 'busybox' ? { Interval: OFTEN, ...check } : check;
  const settings = { Image: image, Cmd: ['sleep', '100000'], Healthcheck, ...body };
  const created = await api.post<{ Id: string }>('/containers/create', settings);
  if (created.status !== 201) return [created.status, created.body];
  const id = created.body.Id;
  await api.post(`/containers/${id}/start`);
  const path = `/containers/${id}/json`;
  const { Config, State } = (await api.get<Inspect>(path)).body;
  let { Health } = State;
  const from = Date.now();
  while (Health !== undefined && Health.Log.length < results) {
    assert.ok(Date.now() < from + 120_000, 'the check is run');
    await setTimeout(LOOK_MS);
    ({ Health } = (await api.get<Inspect>(path)).body.State);
  }
  const events = await allEventsOf(api, id, Health?.Status);
  await api.delete(`/containers/${id}?force=1`);
  const log = Health?.Log.slice(0, results).map(({ ExitCode, Output }) => ({ ExitCode, Output }));
  return { of: Config.Healthcheck, status: Health?.Status, log, events };
}

/** Also the change of the status, which dockerd tells only after it can be seen. */
async function allEventsOf(api: Api, id: string, status = 'none'): Promise<string[]> {
  const from = Date.now();
  for (;;) {
    const events = await eventsOf(api, id);
    if (status === 'none' || status === 'starting' || events.includes(`health_status: ${status}||`)) return events;
    assert.ok(Date.now() < from + 120_000, 'the change of the status is told');
    await setTimeout(LOOK_MS);
  }
}

/** Each one once and sorted: a further check may have begun, and a busy dockerd tells a start after its first check. */
async function eventsOf(api: Api, id: string): Promise<string[]> {
  const filters = encodeURIComponent(JSON.stringify({ container: [id] }));
  const { raw } = await api.get(`/events?since=1&until=${Date.now() / 1000}&filters=${filters}`);
  const events = raw.toString().split('\n').filter(Boolean);
  const told = events.map((line) => {
    const { Action, Actor } = JSON.parse(line) as EventMessage;
    const { execID = '', exitCode = '' } = Actor.Attributes;
    return [Action, exitCode, execID === '' ? '' : 'of an exec'].join('|');
  });
  return [...new Set(told)].toSorted((a, b) => (a < b ? -1 : 1));
}
