import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';

import { eventually } from '@gantry/testing/eventually.ts';

import { BothEngines, docker, type Side } from '../both-engines.ts';

/** Queries, and the status of ours where it differs. */
const QUERIES: readonly (readonly [query: string, ours?: number])[] = [
  ['stdout=1&stderr=1'],
  ['stdout=1'],
  ['stderr=1&timestamps=1'],
  ['stdout=1&details=1'],
  ['stdout=1&stderr=1&details=1&timestamps=1'],
  ['stdout=1&tail=0'],
  ['stdout=1&tail=1'],
  ['stdout=1&tail=all'],
  ['stdout=1&since=1'],
  ['stdout=1&since=4000000000'],
  ['stdout=1&until=1'],
  ['', 400],
  ['stdout=1&tail=x', 400],
  ['stdout=1&tail=-1', 400],
  ['stdout=1&since=x', 400],
];

suite('logs of a service, beside dockerd', { concurrency: false }, () => {
  let engines: BothEngines;
  before(async () => {
    engines = await BothEngines.start('1.41');
    await engines.both(begin);
  });
  after(async () => {
    await engines.both(async ({ api }) => await api.post('/swarm/leave?force=1'));
    await engines[Symbol.asyncDispose]();
  });

  for (const [query, ours] of QUERIES) {
    test(`the query ${query === '' ? 'without a stream' : query}`, async () => {
      const answers = await engines.both(async (side) => {
        const { status, raw } = await side.api.get(`/services/web/logs?${query}`);
        return { status, text: status === 200 ? normal(raw.toString('latin1')) : '' };
      });
      assert.deepEqual(answers.ours, { ...answers.theirs, ...(ours === undefined ? {} : { status: ours }) });
    });
  }

  test('one task, by its id and a prefix of it; unknown ones', async () => {
    const answers = await engines.both(async (side) => {
      const [{ ID } = { ID: '' }] = (await side.api.get<{ ID: string }[]>(`/tasks`)).body;
      const paths = [`/tasks/${ID}`, `/tasks/${ID.slice(0, 12)}`, '/tasks/nope', '/services/nope'];
      const looks = paths.map(async (path) => {
        const { status, raw } = await side.api.get(`${path}/logs?stdout=1`);
        return [status, raw.toString('latin1').trim()];
      });
      return await Promise.all(looks);
    });
    assert.deepEqual(answers.ours, answers.theirs);
  });

  test('the command line', async () => {
    for (const words of ['service logs web', 'service logs --raw web', 'service logs --details -t --no-resolve web']) {
      const said = await engines.both(async (side) => {
        const { code, stdout, stderr } = await docker(side, words.split(' '));
        return { code, stdout: normal(stdout).split('\n').toSorted(), stderr: normal(stderr) };
      });
      assert.deepEqual(said.ours, said.theirs, words);
    }
  });
});

async function begin({ api }: Side): Promise<void> {
  const init = await api.post('/swarm/init', { ListenAddr: '127.0.0.1:2377', AdvertiseAddr: '127.0.0.1' });
  assert.equal(init.status, 200, init.raw.toString());
  const Command = ['sh', '-c', 'echo out; sleep 0.1; echo err >&2; trap "exit 0" TERM; sleep 100000 & wait'];
  const ContainerSpec = { Image: 'busybox', Command, Labels: { a: 'b c' } };
  const LogDriver = { Name: 'json-file', Options: { labels: 'a' } };
  const created = await api.post('/services/create', { Name: 'web', TaskTemplate: { ContainerSpec, LogDriver } });
  assert.equal(created.status, 201, created.raw.toString());
  await eventually('both lines', async () => {
    const { raw } = await api.get('/services/web/logs?stdout=1&stderr=1');
    return raw.includes('out\n') && raw.includes('err\n') ? true : undefined;
  });
}

/** Ids, times and the name of the host differ. */
function normal(text: string): string {
  return text
    .replaceAll(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z/g, '<time>')
    .replaceAll(/\b[0-9a-z]{25}\b/g, '<id>')
    .replaceAll(/(?<=\.1\.)[0-9a-z]{12}/g, '<task>');
}
