import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';

import type { Summary } from '@gantry/engine/containers/schema.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

suite('the list of containers', { concurrency: false }, () => {
  let engine: TestEngine;
  const ids: Record<string, string> = {};
  before(async () => {
    engine = await TestEngine.start();
    ids.created = await engine.create(['true'], { Labels: { team: 'a', tier: '1' } }, 'created');
    ids.failed = await engine.run(['sh', '-c', 'exit 4'], { Labels: { team: 'b' } }, 'failed');
    await engine.wait(ids.failed);
    const ports = {
      ExposedPorts: { '81/tcp': {} },
      HostConfig: { Binds: ['/tmp:/host'], PortBindings: { '80/tcp': [{ HostPort: '18282' }] } },
    };
    ids.web = await engine.run(['sleep', '1000'], ports, 'web');
    ids.store = await engine.run(
      ['sleep', '1000'],
      { HostConfig: { Binds: ['stored:/var/store'], NetworkMode: 'none' } },
      'store',
    );
    ids.paused = await engine.run(['sleep', '1000'], { HostConfig: { NetworkMode: 'host' } }, 'paused');
    await engine.post('/containers/paused/pause');
  });
  after(async () => await engine[Symbol.asyncDispose]());

  async function list(query: string): Promise<Summary[]> {
    const { status, body } = await engine.get<Summary[]>(`/containers/json?${query}`);
    assert.equal(status, 200);
    return body;
  }

  const filtered = (filters: object): string => `filters=${encodeURIComponent(JSON.stringify(filters))}`;
  const namesOf = (found: Summary[]): string[] => found.map(({ Names }) => Names[0]!.slice(1));

  const cases: [string, string, string[]][] = [
    ['only what runs', '', ['paused', 'store', 'web']],
    ['everything', 'all=1', ['paused', 'store', 'web', 'failed', 'created']],
    ['the last two', 'limit=2', ['paused', 'store']],
    ['a state', filtered({ status: ['created'] }), ['created']],
    ['one of two states', filtered({ status: ['exited', 'paused'] }), ['paused', 'failed']],
    ['an exit code', `all=1&${filtered({ exited: ['4'] })}`, ['failed']],
    ['an exit code among what runs', filtered({ exited: ['4', '0'] }), []],
    ['a label', `all=1&${filtered({ label: ['team'] })}`, ['failed', 'created']],
    ['a label with its value', `all=1&${filtered({ label: ['team=a'] })}`, ['created']],
    ['all of several labels', `all=1&${filtered({ label: ['team', 'tier=1'] })}`, ['created']],
    ['what was made before', `all=1&${filtered({ before: ['web'] })}`, ['failed', 'created']],
    ['what was made after', filtered({ since: ['web'] }), ['paused', 'store']],
    ['a volume', filtered({ volume: ['stored'] }), ['store']],
    ['the place of a volume', filtered({ volume: ['/var/store'] }), ['store']],
    ["the host's folder of a bind", filtered({ volume: ['/tmp'] }), ['web']],
    ['a published port', filtered({ publish: ['18282'] }), ['web']],
    ['a range of published ports', filtered({ publish: ['18000-18300/tcp'] }), ['web']],
    ['a port of the other protocol', filtered({ publish: ['18282/udp'] }), []],
    ['an exposed port', filtered({ expose: ['81'] }), ['web']],
    ['a range of exposed ports', filtered({ expose: ['79-82/tcp'] }), ['web']],
    ['a port of either kind', filtered({ expose: ['9'], publish: ['18282'] }), ['web']],
    ['no task', filtered({ 'is-task': ['true'] }), []],
    ['no container with checks', filtered({ health: ['healthy', 'starting'] }), []],
    ['a network', filtered({ network: ['none'] }), ['store']],
    ['the default network', `all=1&${filtered({ network: ['bridge'] })}`, ['web', 'failed', 'created']],
    ['a part of the name', `all=1&${filtered({ name: ['e[bd]$'] })}`, ['paused', 'web', 'failed', 'created']],
    ['a whole name', filtered({ name: ['^/web$', '('] }), ['web']],
    ['a pattern as in Go', filtered({ name: ['(?i)^[[:upper:]]EB$'] }), ['web']],
    ['an image', filtered({ ancestor: ['busybox'] }), ['paused', 'store', 'web']],
    ['an unknown image', `all=1&${filtered({ ancestor: ['nowhere'] })}`, []],
    ['the shape of the docker command line', filtered({ status: { created: true } }), ['created']],
  ];
  for (const [what, query, names] of cases) {
    test(`${what} is listed`, async () => {
      assert.deepEqual(namesOf(await list(query)), names);
    });
  }

  test('an id finds its container', async () => {
    assert.deepEqual(namesOf(await list(filtered({ id: [ids.web!.slice(0, 8)] }))), ['web']);
  });

  const bad = [
    { health: ['ill'] },
    { 'is-task': ['x'] },
    { expose: ['x'] },
    { publish: ['82-81'] },
    { publish: ['65536'] },
    { before: ['nowhere'] },
    { name: ['a'.repeat(300)] },
  ];
  for (const filters of [{ status: ['asleep'] }, { exited: ['x'] }, { colour: ['red'] }, ...bad]) {
    test(`the filter ${JSON.stringify(filters)} is refused`, async () => {
      assert.equal((await engine.get(`/containers/json?${filtered(filters)}`)).status, 400);
    });
  }

  // Tried in every way they would take longer than the universe has: that it answers at all is the proof.
  test('a pattern that has to be tried in many ways is answered', async () => {
    const id = await engine.create(['true'], {}, `${'a'.repeat(200)}_`);

    await Promise.all(['(a+)+$', '(a|a)*$', '(.*a){25}$'].map(async (name) => await list(filtered({ name: [name] }))));

    await engine.delete(`/containers/${id}`);
  });

  test("a line shows the container's image, command and state", async () => {
    const [web] = await list(filtered({ name: ['^web$'] }));

    assert.equal(web?.Id, ids.web);
    assert.equal(web?.Image, 'busybox');
    assert.equal(web?.Command, 'sleep 1000');
    assert.match(web?.Status ?? '', /^Up (Less than a second|\d+ seconds?)$/);
    assert.deepEqual(web?.Ports, [
      { IP: '0.0.0.0', PrivatePort: 80, PublicPort: 18282, Type: 'tcp' },
      { PrivatePort: 81, Type: 'tcp' },
    ]);
    assert.match(web?.NetworkSettings.Networks.bridge?.IPAddress ?? '', /^\d+\.\d+\.\d+\.\d+$/);
  });

  test('the state is said in words', async () => {
    const states = Object.fromEntries(
      (await list('all=1')).map(({ Names, State, Status }) => [Names[0], [State, Status]]),
    );

    assert.match(states['/failed']?.[1] ?? '', /^Exited \(4\) .+ ago$/);
    assert.deepEqual(states['/created'], ['created', 'Created']);
    assert.match(states['/paused']?.[1] ?? '', /^Up .+ \(Paused\)$/);
  });

  test('the sizes come when they are asked for', async () => {
    const writer = await engine.run(['sh', '-c', 'head -c 5000 /dev/zero >/file'], {}, 'writer');
    await engine.wait(writer);

    const [found] = await list(`all=1&size=1&${filtered({ name: ['writer'] })}`);

    assert.equal(found?.SizeRw, 5000);
    assert.ok((found?.SizeRootFs ?? 0) > 5000);
  });
});
