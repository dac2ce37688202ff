import assert from 'node:assert/strict';
import { watch, writeFileSync } from 'node:fs';
import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite, test } from 'node:test';

import { jsonLines } from '@gantry/client/json-lines.ts';
import type { Api } from '@gantry/testing/api.ts';
import { Dockerd } from '@gantry/testing/dockerd.ts';
import { TestEngine } from '@gantry/testing/test-engine.ts';

import type { EventMessage } from '../events/schema.ts';
import type { Info } from './schema.ts';

/** Sends SIGHUP and returns the event that tells of the reload. */
async function reload(api: Api, pid: number): Promise<EventMessage> {
  const stream = await api.stream('GET', '/events?filters={"type":["daemon"]}'.replaceAll('"', '%22'));
  process.kill(pid, 'SIGHUP');
  for await (const event of jsonLines<EventMessage>(stream)) return event;
  throw new Error('the stream of events ended');
}

/** Waits until the daemon has logged a line with this text. */
async function logged(engine: TestEngine, text: string): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const look = (): void => {
    if (engine.log.includes(text)) resolve();
  };
  const watcher = watch(join(engine.directory, 'log'), look);
  look();
  await promise;
  watcher.close();
}

suite('SIGHUP', () => {
  test('puts a changed file in force and tells of it with the attributes of dockerd', async () => {
    await using folder = await mkdtempDisposable(join(tmpdir(), 'gantry-reload-'));
    const write = (name: string, settings: object): string => {
      const path = join(folder.path, name);
      writeFileSync(path, JSON.stringify(settings));
      return path;
    };
    const before = { labels: ['a=b'], 'live-restore': true };
    await using engine = await TestEngine.start({ flags: [`--config-file=${write('ours', before)}`] });
    await using dockerd = await Dockerd.start([`--config-file=${write('theirs', before)}`, '--bridge=none']);
    const changed = { labels: ['c=d', 'e=f'], debug: true, 'live-restore': false, 'shutdown-timeout': 7 };
    write('ours', {
      ...changed,
      runtimes: { logging: { path: 'runc', runtimeArgs: ['--log', join(folder.path, "runc's log")] } },
      'default-runtime': 'logging',
      // A shell counts them in blocks of 512 bytes.
      'default-ulimits': { core: { Name: 'core', Soft: 5 * 512, Hard: 6 * 512 } },
      dns: ['192.0.2.7'],
    });
    write('theirs', changed);

    const ours = await reload(engine, engine.pid);
    const theirs = await reload(dockerd.api, dockerd.pid);

    const { body: info } = await engine.get<Info>('/info');
    assert.deepEqual([info.Labels, info.Debug, info.LiveRestoreEnabled], [['c=d', 'e=f'], true, false]);
    assert.equal(info.DefaultRuntime, 'logging');
    assert.equal(info.Runtimes.logging?.runtimeArgs?.[0], '--log');
    assert.deepEqual([ours.Type, ours.Action, ours.Actor.ID], ['daemon', 'reload', info.ID]);
    assert.deepEqual(Object.keys(ours).toSorted(), Object.keys(theirs).toSorted());
    const attributes = ours.Actor.Attributes;
    assert.deepEqual(Object.keys(attributes).toSorted(), Object.keys(theirs.Actor.Attributes).toSorted());
    const labelsOf = ({ Actor }: EventMessage): string[] =>
      (JSON.parse(Actor.Attributes.labels!) as string[]).toSorted();
    assert.deepEqual(labelsOf(ours), labelsOf(theirs)); // dockerd's order is that of a Go map: any
    for (const key of ['debug', 'live-restore', 'name', 'shutdown-timeout', 'features', 'registry-mirrors']) {
      assert.equal(attributes[key], theirs.Actor.Attributes[key], key);
    }
    const id = await engine.run(['sh', '-c', 'ulimit -Sc; ulimit -Hc; cat /etc/resolv.conf']);
    assert.equal(await engine.wait(id), 0);
    assert.match((await engine.output(id)).stdout, /^5\n6\n[^]*nameserver 192\.0\.2\.7\n/);
    const { body: seen } = await engine.get<{ HostConfig: { Runtime: string } }>(`/containers/${id}/json`);
    assert.equal(seen.HostConfig.Runtime, 'logging');
  });

  test('with a bad file changes nothing, and names the problem', async () => {
    await using folder = await mkdtempDisposable(join(tmpdir(), 'gantry-reload-'));
    const path = join(folder.path, 'config.json');
    const write = (text: string): void => writeFileSync(path, text);
    write('{"labels": ["a=b"]}');
    await using engine = await TestEngine.start({
      image: false,
      flags: ['--config-file', path, '--shutdown-timeout=3'],
    });

    for (const [text, problem] of [
      ['{"labels": ["c=d"], "debug": yes}', /config\.json is not JSON/],
      ['{"labels": ["c=d"], "colour": "red"}', /config\.json: colour: unknown setting/],
      ['{"labels": ["c"]}', /config\.json: labels: bad attribute format: c/],
      ['{"labels": ["c=d"], "shutdown-timeout": 4}', /flag --shutdown-timeout: also set in the configuration file/],
      ['{"labels": ["c=d"], "default-runtime": "kata"}', /default runtime 'kata' does not exist/],
    ] as const) {
      const known = engine.log.length;
      write(text);
      process.kill(engine.pid, 'SIGHUP');
      while (!engine.log.slice(known).includes('was not reloaded')) await logged(engine, 'was not reloaded');
      assert.match(engine.log.slice(known), problem);
    }
    write('{"labels": ["c=d"], "bip": "10.77.0.1/24"}');
    await reload(engine, engine.pid);

    const { body: info } = await engine.get<Info>('/info');
    assert.deepEqual(info.Labels, ['c=d']);
    assert.match(engine.log, /"settings":\["bip"\],"msg":"these settings take effect at the next start"/);
    const events = (await engine.get('/events?since=0&until=1h')).raw.toString();
    assert.doesNotMatch(events, /reload/);
    const all = (await engine.get('/events', { query: { since: '0', until: String(Date.now() / 1000 + 1) } })).raw;
    assert.equal([...all.toString().matchAll(/"Action":"reload"/g)].length, 1);
  });
});
