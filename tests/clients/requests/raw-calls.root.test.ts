import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';

import { Api } from '@gantry/testing/api.ts';
import { busyboxArchive } from '@gantry/testing/busybox-image.ts';
import { Dockerd, NEWER_JUDGE } from '@gantry/testing/dockerd.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

import { RAW_CALLS, type RawCall } from './raw-calls.ts';

type Answer = { status: number; type: string | undefined; body: unknown };
type Side = { api: Api; exec: string };

/** Below 28, dockerd 20.10 at 1.40; by hand beside 28.5 without a version (see testing/dockerd.ts). */
const PREFIX = NEWER_JUDGE === undefined ? '/v1.40' : '';

/** Fields about dockerd's own parts, and lists that are null or left out there when they are empty. */
const OTHERS =
  /\.(GraphDriver\.Data|Runtimes|Containerd|RegistryConfig\.Mirrors|Health\.Log|Containers\.[0-9a-f]{64}|BuildCache|RepoDigests|Warnings|Aliases|DNSNames)(\b|$)/;

suite(`raw calls with the prefix "${PREFIX}", to our daemon and to dockerd`, { concurrency: false }, () => {
  const parts = new AsyncDisposableStack();
  const sides: Side[] = [];
  before(async () => {
    const ours = parts.use(await TestEngine.start({ version: '1.41', flags: ['--max-api-version=1.51'] }));
    const theirs = parts.use(await Dockerd.start());
    await theirs.api.post('/images/load?quiet=1', await busyboxArchive());
    for (const { socketPath } of [ours, theirs]) sides.push({ api: parts.use(new Api(socketPath, PREFIX)), exec: '' });
  });
  after(async () => await parts.disposeAsync());

  for (const row of RAW_CALLS) {
    test(`${decodeURIComponent(row.line)}: ${row.chosen ?? 'as dockerd'}`, async () => {
      const [ours, theirs] = await Promise.all(sides.map(async (side) => await ask(side, row)));

      if (row.chosen !== undefined) {
        assert.notEqual(ours!.status, theirs!.status, 'there is no difference any more');
        return;
      }
      assert.equal(ours!.status, theirs!.status);
      assert.deepEqual([...missing(ours!.body, theirs!.body, '')], []);
    });
  }
});

async function ask(side: Side, { line, body }: RawCall): Promise<Answer> {
  const now = String(Math.ceil(Date.now() / 1000));
  const [method = '', path = ''] = line.replace('{exec}', side.exec).replaceAll('{now}', now).split(/ (.*)/s);
  const answer = await side.api.request<{ Id?: string } | undefined>(method, path, { body });
  if (path.endsWith('/exec')) side.exec = answer.body?.Id ?? '';
  return { status: answer.status, type: answer.headers['content-type'], body: answer.body };
}

/** The fields of dockerd that ours has not, or has of another type: answers may have more. */
function* missing(ours: unknown, theirs: unknown, place: string): Generator<string> {
  if (OTHERS.test(place) || theirs === null) return;
  if (Array.isArray(theirs)) {
    if (!Array.isArray(ours) || (theirs.length > 0 && ours.length === 0)) yield `${place}: ${JSON.stringify(ours)}`;
    else if (theirs.length > 0) yield* missing(byName(ours)[0], byName(theirs)[0], `${place}[]`);
  } else if (typeof theirs === 'object' && typeof ours === 'object' && ours !== null) {
    for (const [key, value] of Object.entries(theirs)) {
      yield* missing((ours as Record<string, unknown>)[key], value, `${place}.${key}`);
    }
  } else if (typeof ours !== typeof theirs) yield `${place}: ${JSON.stringify(ours)} for ${JSON.stringify(theirs)}`;
}

function byName(list: readonly unknown[]): unknown[] {
  return list.toSorted((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1));
}

function nameOf(one: unknown): string {
  return String((one as { Name?: string } | null)?.Name);
}
